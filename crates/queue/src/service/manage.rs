//! Queues and groups as things, and the sweeping of what is too old.

use std::{sync::Arc, time::Duration};

use wakeline_web::Problem;

use super::Queue;
use crate::{
    error::Error,
    manage::{Configured, GroupScope, Modes, NewOptions, Seek},
    stream::{Registered, Registration, StateQuery, StateRow},
    topic::{self, QueueName},
};

/// Segments that one slice of sweeping removes at most.
const SLICE: u32 = 500;
/// Between two slices, so that sweeping never takes a store for itself.
const BETWEEN_SLICES: Duration = Duration::from_millis(20);

impl Queue {
    /// Makes a queue or gives it other options.
    pub async fn configure(&self, new: NewOptions) -> Result<Configured, Error> {
        if new.options.is_sealed && self.sealer.is_none() {
            return Err(Problem::invalid(
                "options.encryptionEnabled",
                "the server has no key: set queue.encryption_key to 64 hexadecimal digits",
            )
            .into());
        }
        let queue = new.queue.clone();
        let configured = self.store.configure(new).await?;
        self.sealed
            .lock()
            .expect("no panic while it is held")
            .remove(&queue);
        // What was held back may be due now, and others may be asking by its namespace.
        let names = QueueName {
            name: &queue,
            namespace: &configured.namespace,
            task: &configured.task,
        };
        self.bus.publish(&topic::all(names, &[]));
        Ok(configured)
    }

    pub async fn delete_queue(&self, queue: String) -> Result<bool, Error> {
        let partitions = self.store.delete_queue(queue.clone()).await?;
        if let Some(partitions) = partitions {
            self.tally.deleted(&queue, partitions);
        }
        Ok(partitions.is_some())
    }

    pub async fn delete_group(&self, scope: GroupScope, with_start: bool) -> Result<u64, Error> {
        let deleted = self.store.delete_group(scope, with_start).await?;
        // Whoever still waits for the group finds what it begins with again.
        self.bus.publish_door(topic::DOOR);
        Ok(deleted)
    }

    pub async fn seek(&self, scope: GroupScope, to: Seek) -> Result<u64, Error> {
        let partition = scope.partition.clone();
        let sought = self.store.seek(scope, to).await?;
        for (name, namespace, task) in &sought.queues {
            let names = QueueName {
                name,
                namespace,
                task,
            };
            self.bus.publish(&topic::all(names, partition.as_slice()));
        }
        Ok(sought.partitions)
    }

    pub async fn subscribe(&self, group: String, begin_us: i64) -> Result<u64, Error> {
        Ok(self.store.subscribe(group, begin_us).await?)
    }

    pub async fn modes(&self) -> Result<Modes, Error> {
        Ok(self.store.modes().await?)
    }

    pub async fn pause_pushes(&self, paused: bool) -> Result<Modes, Error> {
        Ok(self.store.set_push_paused(paused).await?)
    }

    pub async fn pause_pops(&self, paused: bool) -> Result<Modes, Error> {
        let modes = self.store.set_pop_paused(paused).await?;
        // Those who were held meanwhile look again.
        self.bus.publish_door(topic::DOOR);
        Ok(modes)
    }

    pub async fn register_stream(&self, query: Registration) -> Result<Registered, Error> {
        Ok(self.store.register(query).await?)
    }

    pub async fn stream_states(&self, query: StateQuery) -> Result<Vec<StateRow>, Error> {
        Ok(self.store.states(query).await?)
    }

    /// Removes what is too old, at an interval, for ever.
    pub async fn sweep(self: Arc<Self>, interval: Duration) {
        loop {
            tokio::time::sleep(interval.mul_f64(rand::random_range(0.8..1.2))).await;
            loop {
                match self.store.sweep(SLICE).await {
                    Ok(swept) => {
                        self.tally.swept(&swept.queues);
                        if swept.messages > 0 {
                            metrics::counter!("wakeline_queue_swept_total")
                                .increment(swept.messages);
                        }
                        if !swept.is_more {
                            break;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "sweeping failed; it is tried again");
                        break;
                    }
                }
                tokio::time::sleep(BETWEEN_SLICES).await;
            }
        }
    }
}
