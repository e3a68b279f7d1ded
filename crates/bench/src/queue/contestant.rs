//! A server that is measured.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Uri;
use wakeline_client::Client;

use super::args::QueueArgs;
use super::bodies::{Shape, Template};
use crate::failures::Failures;
use crate::line::{Line, Target};
use crate::meter::{Database, Meter};
use crate::own::OwnServer;

/// A request that is not held and takes longer has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Contestant {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) target: Arc<Target>,
    pub(super) failures: Arc<Failures>,
    token: Option<String>,
    /// Its database, when that is known.
    pub(super) postgres: Option<String>,
    run: String,
    /// Started for this run, and ended with it.
    _own: Option<OwnServer>,
}

impl Contestant {
    pub(super) async fn at(url: &str, token: Option<String>) -> anyhow::Result<Self> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(Self {
            name: url.to_owned(),
            url: url.to_owned(),
            target: Target::resolve(url, token.as_deref()).await?,
            failures: Arc::default(),
            token,
            postgres: None,
            run: format!("bench-{:x}-{}", now.as_millis(), std::process::id()),
            _own: None,
        })
    }

    pub(super) async fn own(
        name: &str,
        server: OwnServer,
        postgres: Option<String>,
    ) -> anyhow::Result<Self> {
        let contestant = Self::at(&server.url(), None).await?;
        Ok(Self {
            name: name.to_owned(),
            postgres,
            _own: Some(server),
            ..contestant
        })
    }

    /// Named after the run, so that nothing is in it from before.
    pub(super) fn queue(&self, phase: &str) -> String {
        format!("{}-{phase}", self.run)
    }

    pub(super) fn line(&self) -> Line {
        Line::to(&self.target)
    }

    pub(super) fn path(&self, path: &str) -> Uri {
        self.target.path(path)
    }

    pub(super) async fn meter(&self) -> anyhow::Result<Meter> {
        let client = Client::new(&self.url, self.token.clone())?;
        let database = match &self.postgres {
            Some(url) => Some(Database::connect(url).await?),
            None => None,
        };
        Ok(Meter::new(vec![client], Vec::new(), database))
    }
}

/// One template for each of the queue's partitions, whose items all go there.
pub(super) fn templates(args: &QueueArgs, queue: &str, batch: usize) -> Arc<[Template]> {
    let shape = shape(args, queue);
    (0..args.partitions)
        .map(|partition| {
            let name = format!("p{partition}");
            Template::new(&shape, std::iter::repeat_n(&*name, batch))
        })
        .collect()
}

pub(super) fn shape(args: &QueueArgs, queue: &str) -> Shape {
    Shape {
        queue: queue.to_owned(),
        payload: args.payload,
        transaction_ids: args.transaction_ids,
    }
}
