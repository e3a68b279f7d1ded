//! Administration of queues and groups, and the sweeping of old messages.

use std::{sync::Arc, time::Duration};

use wakeline_web::Problem;

use super::Queue;
use crate::{
    error::Error,
    queue_admin::{ConfigureRequest, ConfigureResult, GroupScope, PauseModes, Seek},
    stream::{RegisterResult, StateQuery, StateRow, StreamRegistration},
};

/// Segments that one sweep removes at most.
const SWEEP_SEGMENTS: u32 = 500;
/// Between two sweeps, so that sweeping leaves room for other writes.
const SWEEP_PAUSE: Duration = Duration::from_millis(20);

impl Queue {
    /// Creates a queue or replaces its options.
    pub async fn configure(&self, new: ConfigureRequest) -> Result<ConfigureResult, Error> {
        if new.options.is_sealed && self.sealer.is_none() {
            return Err(Problem::invalid(
                "options.encryptionEnabled",
                "the server has no key: set queue.encryption_key to 64 hexadecimal digits",
            )
            .into());
        }
        let (sealer, queue) = (self.sealer.clone(), new.queue.clone());
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
                metrics::counter!("wakeline_queue_swept_total").increment(swept.messages);
            }
            swept.is_more
        });
        write.commit(&self.bus).await
    }
}
