//! A server that is measured.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Uri;
use wakeline_client::Client;

use crate::failures::Failures;
use crate::line::{Line, Target};
use crate::meter::{Database, Meter};
use crate::own::OwnServer;

/// A request that is not held and takes longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// After a failure, so that a server in trouble is not hammered.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Contestant {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) target: Arc<Target>,
    pub(crate) failures: Arc<Failures>,
    token: Option<String>,
    /// Its processes, when they are known.
    pub(crate) pids: Vec<u32>,
    /// Its database, when that is known.
    pub(crate) postgres: Option<String>,
    run: String,
    /// Started for this run, and ended with it.
    own: Option<OwnServer>,
}

impl Contestant {
    pub(crate) async fn at(url: &str, token: Option<String>) -> anyhow::Result<Self> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Self {
            name: url.to_owned(),
            url: url.to_owned(),
            target: Target::resolve(url, token.as_deref()).await?,
            failures: Arc::default(),
            token,
            pids: Vec::new(),
            postgres: None,
            run: format!("bench-{:x}-{}", now.as_millis(), std::process::id()),
            own: None,
        })
    }

    pub(crate) async fn own(
        name: &str,
        server: OwnServer,
        postgres: Option<String>,
    ) -> anyhow::Result<Self> {
        let contestant = Self::at(&server.url(), None).await?;
        Ok(Self {
            name: name.to_owned(),
            pids: server.pid().into_iter().collect(),
            postgres,
            own: Some(server),
            ..contestant
        })
    }

    /// A new process on the same data, if it was started for this run: what an allocator kept
    /// from earlier work would hide what the next takes.
    pub(crate) fn start_afresh(&mut self) -> anyhow::Result<()> {
        if let Some(server) = &mut self.own {
            server.kill()?;
            server.start()?;
            self.pids = server.pid().into_iter().collect();
        }
        Ok(())
    }

    /// A name of this run, so that nothing is there under it from before.
    pub(crate) fn named(&self, phase: &str) -> String {
        format!("{}-{phase}", self.run)
    }

    pub(crate) fn line(&self) -> Line {
        Line::to(&self.target)
    }

    pub(crate) fn path(&self, path: &str) -> Uri {
        self.target.path(path)
    }

    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.url, self.token.clone())?)
    }

    pub(crate) async fn meter(&self) -> anyhow::Result<Meter> {
        let database = match &self.postgres {
            Some(url) => Some(Database::connect(url).await?),
            None => None,
        };
        Ok(Meter::new(
            vec![self.client()?],
            self.pids.clone(),
            database,
        ))
    }
}
