//! A server that is measured.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Uri;
use wakeline_client::Client;

use crate::connection::{Connection, ServerAddress};
use crate::failures::Failures;
use crate::meter::{DatabaseCounters, Meter};
use crate::server_process::ServerProcess;
use crate::suite::Contestant;

/// A request that is not held and takes longer has failed.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// After a failure, so that a server in trouble is not hammered.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) address: Arc<ServerAddress>,
    pub(crate) failures: Arc<Failures>,
    token: Option<String>,
    /// Its processes, when they are known.
    pub(crate) pids: Vec<u32>,
    /// The URL of its database, when that is known.
    pub(crate) postgres: Option<String>,
    run: String,
    /// Started for this run, and ended with it.
    process: Option<ServerProcess>,
}

impl Server {
    pub(crate) async fn at(url: &str, token: Option<String>) -> anyhow::Result<Self> {
        Ok(Self {
            name: url.to_owned(),
            url: url.to_owned(),
            address: ServerAddress::resolve(url, token.as_deref()).await?,
            failures: Arc::default(),
            token,
            pids: Vec::new(),
            postgres: None,
            run: run_name(),
            process: None,
        })
    }

    /// A server that was started for this run.
    pub(crate) async fn of(
        name: &str,
        process: ServerProcess,
        postgres: Option<String>,
    ) -> anyhow::Result<Self> {
        let server = Self::at(&process.url(), None).await?;
        Ok(Self {
            name: name.to_owned(),
            pids: process.pid().into_iter().collect(),
            postgres,
            process: Some(process),
            ..server
        })
    }

    /// A new process on the same data, if it was started for this run: memory that an allocator
    /// kept from earlier work would hide what the next phase takes.
    pub(crate) fn restart(&mut self) -> anyhow::Result<()> {
        if let Some(process) = &mut self.process {
            process.kill()?;
            process.start()?;
            self.pids = process.pid().into_iter().collect();
        }
        Ok(())
    }

    /// A name that only this run uses, so that nothing is there under it from before.
    pub(crate) fn unique_name(&self, phase: &str) -> String {
        format!("{}-{phase}", self.run)
    }

    pub(crate) fn connection(&self) -> Connection {
        Connection::to(&self.address)
    }

    pub(crate) fn path(&self, path: &str) -> Uri {
        self.address.path(path)
    }

    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.url, self.token.clone())?)
    }

    pub(crate) async fn meter(&self) -> anyhow::Result<Meter> {
        let database = DatabaseCounters::connect_to(self.postgres.as_deref()).await?;
        Ok(Meter::new(
            vec![self.client()?],
            self.pids.clone(),
            database,
        ))
    }
}

pub(crate) fn run_name() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("bench-{:x}-{}", now.as_millis(), std::process::id())
}

impl Contestant for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn failures(&self) -> &Failures {
        &self.failures
    }

    fn server(&self) -> Option<&Server> {
        Some(self)
    }
}
