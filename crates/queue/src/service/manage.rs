//! Queues and groups as things, and the sweeping of what is too old.

use std::{sync::Arc, time::Duration};

use wakeline_web::Problem;

use super::Queue;
use crate::{
    error::Error,
    manage::{Configured, GroupScope, Modes, NewOptions, Seek},
    stream::{Registered, Registration, StateQuery, StateRow},
};

/// Segments that one slice of sweeping removes at most.
const SLICE: u32 = 500;
/// Between two slices, so that sweeping never takes a store for itself.
const BETWEEN_SLICES: Duration = Duration::from_millis(20);

impl Queue {
    /// Makes a queue or gives it other options.
    pub async fn configure(&self, new: NewOptions) -> Result<Configured, Error> {
        if new.options.is_sealed && self.sealing.is_none() {
            return Err(Problem::invalid(
                "options.encryptionEnabled",
                "the server has no key: set queue.encryption_key to 64 hexadecimal digits",
            )
            .into());
        }
        let (sealing, queue) = (self.sealing.clone(), new.queue.clone());
        let write = self.store.configure(new).map(move |configured| {
            if let Some(sealing) = sealing {
                sealing.forget(&queue);
            }
            configured
        });
        Ok(write.commit(&self.bus).await?)
    }

    /// Whether there was one.
    pub async fn delete_queue(&self, queue: String) -> Result<bool, Error> {
        let tally = self.tally.clone();
        let write = self
            .store
            .delete_queue(queue.clone())
            .map(move |partitions| {
                if let Some(partitions) = partitions {
                    tally.deleted(&queue, partitions);
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

    pub async fn modes(&self) -> Result<Modes, Error> {
        Ok(self.store.modes().await?)
    }

    pub async fn pause_pushes(&self, paused: bool) -> Result<Modes, Error> {
        let write = self.store.set_push_paused(paused);
        Ok(write.commit(&self.bus).await?)
    }

    pub async fn pause_pops(&self, paused: bool) -> Result<Modes, Error> {
        let write = self.store.set_pop_paused(paused);
        Ok(write.commit(&self.bus).await?)
    }

    pub async fn register_stream(&self, query: Registration) -> Result<Registered, Error> {
        Ok(self.store.register(query).commit(&self.bus).await?)
    }

    pub async fn stream_states(&self, query: StateQuery) -> Result<Vec<StateRow>, Error> {
        Ok(self.store.states(query).await?)
    }

    /// Removes what is too old, at an interval, for ever.
    pub async fn sweep(self: Arc<Self>, interval: Duration) {
        loop {
            tokio::time::sleep(interval.mul_f64(rand::random_range(0.8..1.2))).await;
            loop {
                match self.sweep_slice().await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        tracing::warn!(%error, "sweeping failed; it is tried again");
                        break;
                    }
                }
                tokio::time::sleep(BETWEEN_SLICES).await;
            }
        }
    }
    /// Whether there may be more to remove at once.
    async fn sweep_slice(&self) -> Result<bool, wakeline_store::Error> {
        let tally = self.tally.clone();
        let write = self.store.sweep(SLICE).map(move |swept| {
            tally.swept(&swept.queues);
            if swept.messages > 0 {
                metrics::counter!("wakeline_queue_swept_total").increment(swept.messages);
            }
            swept.is_more
        });
        write.commit(&self.bus).await
    }
}
