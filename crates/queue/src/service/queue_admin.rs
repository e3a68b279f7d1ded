//! Administration of queues and groups, and the sweeping of old messages.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use wakeline_web::Problem;

use super::Queue;
use crate::{
    error::Error,
    metrics, options,
    queue_admin::{
        ChangedQueue, ConfigureRequest, ConfigureResult, GroupScope, PauseModes, QueueChange, Seek,
    },
    store::statements,
    stream::{RegisterResult, StateQuery, StateRow, StreamRegistration},
};

/// How often a change is tried again because of others to the same queue.
const CHANGE_TRIES: usize = 10;
/// Segments that one sweep removes at most.
const SWEEP_SEGMENTS: u32 = 500;
/// Between two sweeps, so that sweeping leaves room for other writes.
const SWEEP_PAUSE: Duration = Duration::from_millis(20);

impl Queue {
    /// Creates a queue or changes its options.
    pub async fn change(&self, change: QueueChange) -> Result<ChangedQueue, Error> {
        let made_key = match change.options.asks_for_encryption() {
            true => self.ensure_key().await?,
            false => None,
        };
        for _ in 0..CHANGE_TRIES {
            let made_of = match change.options.is_merged() {
                true => Some(self.given_options(&change.queue).await?),
                false => None,
            };
            let given = change.options.apply(&made_of.clone().unwrap_or_default());
            let (options, given) = options::read(given)?;
            let new = ConfigureRequest {
                queue: change.queue.clone(),
                namespace: change.namespace.clone(),
                task: change.task.clone(),
                options: options.clone(),
                given: given.clone(),
                made_of,
            };
            if let Some(configured) = self.configure(new).await? {
                return Ok(ChangedQueue {
                    configured,
                    options,
                    given,
                    made_key,
                });
            }
        }
        Err(Problem::unavailable(
            "configured-meanwhile",
            "the queue is configured by others at the same moment; nothing was done, try again",
        )
        .into())
    }

    /// Of a queue that there is not: none.
    async fn given_options(&self, queue: &str) -> Result<Map<String, Value>, Error> {
        let parameters = vec![queue.into()];
        let rows = self
            .store
            .rows("queues", statements::QUEUE_OPTIONS, parameters);
        let rows = rows.await?;
        let given = rows.first().map(|row| row.text("options"));
        Ok(given
            .and_then(|given| serde_json::from_str(&given).ok())
            .unwrap_or_default())
    }

    /// Creates a queue or replaces its options.
    pub async fn configure(&self, new: ConfigureRequest) -> Result<Option<ConfigureResult>, Error> {
        let (sealer, queue) = (self.sealer.get().cloned(), new.queue.clone());
        let write = self.store.configure(new).map(move |configured| {
            if let Some(sealer) = sealer {
                sealer.forget(&queue);
            }
            configured
        });
        Ok(write.commit(&self.bus).await?)
    }

    /// Deletes a queue. Whether there was one.
    pub async fn delete_queue(&self, queue: String) -> Result<bool, Error> {
        let counters = self.counters.clone();
        let write = self
            .store
            .delete_queue(queue.clone())
            .map(move |partitions| {
                if let Some(partitions) = partitions {
                    counters.count_deleted_partitions(&queue, partitions);
                }
                partitions.is_some()
            });
        Ok(write.commit(&self.bus).await?)
    }

    pub async fn delete_group(&self, scope: GroupScope, with_start: bool) -> Result<u64, Error> {
        let write = self.store.delete_group(scope, with_start);
        Ok(write.commit(&self.bus).await?)
    }

    pub async fn seek(&self, scope: GroupScope, to: Seek) -> Result<u64, Error> {
        Ok(self.store.seek(scope, to).commit(&self.bus).await?)
    }

    pub async fn subscribe(&self, group: String, begin_us: i64) -> Result<u64, Error> {
        let write = self.store.subscribe(group, begin_us);
        Ok(write.commit(&self.bus).await?)
    }

    pub async fn modes(&self) -> Result<PauseModes, Error> {
        Ok(self.store.modes().await?)
    }

    pub async fn pause_pushes(&self, paused: bool) -> Result<PauseModes, Error> {
        let write = self.store.set_push_paused(paused);
        Ok(write.commit(&self.bus).await?)
    }

    pub async fn pause_pops(&self, paused: bool) -> Result<PauseModes, Error> {
        let write = self.store.set_pop_paused(paused);
        Ok(write.commit(&self.bus).await?)
    }

    pub async fn register_stream(
        &self,
        query: StreamRegistration,
    ) -> Result<RegisterResult, Error> {
        Ok(self.store.register(query).commit(&self.bus).await?)
    }

    pub async fn stream_states(&self, query: StateQuery) -> Result<Vec<StateRow>, Error> {
        Ok(self.store.states(query).await?)
    }

    /// Removes old messages, at an interval, for ever.
    pub async fn sweep(self: Arc<Self>, interval: Duration) {
        loop {
            tokio::time::sleep(interval.mul_f64(rand::random_range(0.8..1.2))).await;
            loop {
                match self.sweep_once().await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        tracing::warn!(%error, "sweeping old messages failed; it is tried again");
                        break;
                    }
                }
                tokio::time::sleep(SWEEP_PAUSE).await;
            }
        }
    }

    /// Whether there may be more to remove at once.
    async fn sweep_once(&self) -> Result<bool, wakeline_store::Error> {
        let counters = self.counters.clone();
        let write = self.store.sweep(SWEEP_SEGMENTS).map(move |swept| {
            counters.count_swept(&swept.queues);
            if swept.messages > 0 {
                metrics::swept(swept.messages);
            }
            swept.is_more
        });
        write.commit(&self.bus).await
    }
}
