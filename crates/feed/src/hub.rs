//! The open streams of this node, and which of them a new fact can concern.
//!
//! Streams whose feeds differ only in their givens have the same query. A fact is looked up once
//! per query and variable of its type, however many streams there are.

mod concern;
mod follower;
mod registry;

pub use follower::Follower;
pub use registry::{Registration, StreamInbox, Watch};

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wakeline_store::Error;
use wakeline_wake::{Cause, Engine, Topic, Wake};

use crate::{
    query::Query,
    store::{Log, Seq, Store},
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

    /// A stream of a feed. It gets nothing before [`Registration::watch`].
    #[must_use]
    pub fn register(self: &Arc<Self>, topic: Topic, waitlist_cap: usize) -> Registration {
        let (stream, inbox) = self.registry().open(topic, waitlist_cap);
        Registration::new(self.clone(), stream, inbox)
    }

    /// Open streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.registry().len()
    }

    /// Delivers new facts to the streams that they can concern, and wakes those.
    pub(crate) async fn matched(&self, log: &Log, cause: Cause) -> Result<(), Error> {
        let lookups = self.registry().lookups(&log.entries);
        let mut found = Vec::new();
        for lookup in lookups {
            let watched = |query: &Query| self.registry().watched(query);
            found.push(lookup.answer(&*self.store, watched).await?);
        }
        let topics = self.registry().deliver(log, found);
        for topic in topics {
            self.engine.wake(&Wake::all(topic), cause);
        }
        Ok(())
    }

    /// There are too many new facts to look up each: every stream reads the span itself.
    pub(crate) fn skip(&self, after: Seq, to: Seq, cause: Cause) {
        let topics = self.registry().deliver_span(after, to);
        for topic in topics {
            self.engine.wake(&Wake::all(topic), cause);
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
