//! Which stream a new fact can concern: the open streams of this node, by what they look for.
//!
//! Streams whose feeds differ only in their givens have the same query. A fact is looked at once per
//! query and place in it where it fits, however many streams there are.

mod concern;
mod follower;
mod registry;

pub use follower::Follower;
pub use registry::{Registration, Signal, Watch};

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wakeline_store::Error;
use wakeline_wake::{Cause, Engine, Topic, Wake};

use crate::{
    query::Query,
    store::{Log, Position, Store},
};
use registry::Registry;

/// The open streams of this node.
#[derive(Debug)]
pub struct Hub {
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    registry: Mutex<Registry>,
}

impl Hub {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, engine: Arc<Engine>) -> Arc<Self> {
        Arc::new(Self {
            store,
            engine,
            registry: Mutex::default(),
        })
    }

    /// A stream of a feed, which hears nothing yet: see [`Registration::watch`].
    #[must_use]
    pub fn register(self: &Arc<Self>, topic: Topic, waitlist_cap: usize) -> Registration {
        let (stream, signal) = self.registry().open(topic, waitlist_cap);
        Registration::new(self.clone(), stream, signal)
    }

    /// Open streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.registry().len()
    }

    /// Tells the streams that these facts can concern.
    pub(crate) async fn matched(&self, log: &Log, cause: Cause) -> Result<(), Error> {
        let tasks = self.registry().tasks(&log.entries);
        let mut found = Vec::new();
        for task in tasks {
            let watched = |query: &Query| self.registry().watched(query);
            found.push(task.answer(&*self.store, watched).await?);
        }
        let topics = self.registry().tell(log, found);
        for topic in topics {
            self.engine.wake(&Wake::all(topic), cause);
        }
        Ok(())
    }

    /// Too much has happened to look at each fact: every stream looks for itself.
    pub(crate) fn skip(&self, after: Position, to: Position, cause: Cause) {
        let topics = self.registry().tell_all(after, to);
        for topic in topics {
            self.engine.wake(&Wake::all(topic), cause);
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
