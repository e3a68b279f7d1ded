//! The statements that many callers share.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use wakeline_bus::Write;
use wakeline_store::{Error, postgres::Batcher};

use super::{
    Store,
    changes::{Change, ChangeAttempt, ChangeBatches, ChangeResult},
    fetch::{ActivityFetches, InstanceFetches},
    history::HistoryReads,
    retry_while, write,
};
use crate::provider::{shared_bus::SharedBus, topics::Topics};

#[derive(Debug)]
pub(crate) struct Batches {
    changes: Batcher<ChangeBatches>,
    pub(crate) instances: Batcher<InstanceFetches>,
    pub(crate) activities: Batcher<ActivityFetches>,
    pub(crate) histories: Batcher<HistoryReads>,
}

impl Batches {
    /// `node` names this process' cache of histories; timers are woken `grace` after they are due.
    pub(crate) fn start(
        store: &Store,
        shared: &Arc<SharedBus>,
        topics: &Topics,
        grace: Duration,
        node: i64,
    ) -> Self {
        let (postgres, schema) = (&store.postgres, &store.quoted_schema);
        let changes = ChangeBatches::new(schema, topics.clone(), shared.clone(), grace);
        Self {
            changes: Batcher::start(postgres, changes, 2),
            instances: Batcher::start(postgres, InstanceFetches::new(schema, node), 2),
            activities: Batcher::start(postgres, ActivityFetches::new(schema), 2),
            histories: Batcher::start(postgres, HistoryReads::new(schema), 1),
        }
    }

    /// Applies a change; it is tried until `until` while `may_repeat` allows it. The value says
    /// whether the change's lease was held; without the lease nothing is changed.
    pub(crate) fn apply(
        &self,
        change: Change,
        until: Instant,
        may_repeat: impl Fn(&Error) -> bool + Send + Sync + 'static,
    ) -> Write<bool> {
        let (changes, change) = (self.changes.clone(), Arc::new(change));
        let run = async move {
            let attempt = |is_repeat| {
                changes.submit(ChangeAttempt {
                    change: change.clone(),
                    is_repeat,
                })
            };
            retry_while(may_repeat, until, attempt).await
        };
        write(run, |result: &ChangeResult| result.wakes.clone()).map(|result| result.is_held)
    }
}
