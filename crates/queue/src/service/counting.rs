//! Writing what was counted and how the node is doing.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::Queue;
use crate::{
    claim::Source,
    node::Node,
    tally::{Moment, now_us},
    topic,
};

impl Queue {
    /// Says which node this is, before anything is written of it.
    pub fn runs_at(&self, node: Node) {
        self.pulse.begin(&node);
        // Said once: a second node in one process is none.
        let _ = self.node.set(node);
    }

    fn node(&self) -> &Node {
        self.node.get_or_init(Node::default)
    }

    /// Writes what was counted, at an interval, for ever. While nothing is done and nobody waits,
    /// only how the node is doing is written, once a minute.
    pub async fn count(self: Arc<Self>, interval: Duration) {
        loop {
            let began = Instant::now();
            tokio::time::sleep(interval).await;
            self.pulse.late(began.elapsed().saturating_sub(interval));
            self.sample_parked();
            self.write(false).await;
        }
    }

    /// Writes all that is known by now; to be called at the end, and when somebody asks.
    pub async fn write_counts(&self) {
        self.sample_parked();
        self.write(true).await;
    }

    /// Pops by namespace or task wait for no queue in particular.
    fn sample_parked(&self) {
        let mut held: HashMap<String, i64> = HashMap::new();
        for waiting in self.engine.waiting(topic::DOOR) {
            if let Some(Source::Queue { queue, .. }) = topic::source(&waiting.topic) {
                let count = held.entry(queue).or_default();
                *count += i64::try_from(waiting.waiters).unwrap_or_default();
            }
        }
        self.parked.add(now_us(), held);
    }

    async fn write(&self, so_far: bool) {
        let load = self.store.load();
        self.tally.store_failed(load.failures);
        let counts = self.tally.take();
        if !counts.is_empty()
            && let Err(error) = self
                .store
                .add_counts(counts.clone())
                .commit(&self.bus)
                .await
        {
            tracing::warn!(%error, "what was counted cannot be written; it is tried again");
            self.tally.give_back(counts);
            return;
        }
        let parked = self.parked.take(so_far);
        let node = self.node();
        if !parked.is_empty() {
            let place = (node.hostname.clone(), node.port.into());
            if let Err(error) = self
                .store
                .set_parked(place, parked.clone())
                .commit(&self.bus)
                .await
            {
                tracing::warn!(%error, "what was held cannot be written; it is tried again");
                self.parked.give_back(parked);
                return;
            }
        }
        if so_far || self.pulse.is_due(now_us()) {
            let moment = Moment {
                now_us: now_us(),
                load,
                held: self.engine.held(),
                messages: self.tally.take_processed(),
            };
            let vitals = self.pulse.sample(node, moment);
            if let Err(error) = self.store.set_vitals(vitals).commit(&self.bus).await {
                tracing::warn!(%error, "how the node is doing cannot be written");
                self.tally.give_back_processed(moment.messages);
            }
        }
    }
}
