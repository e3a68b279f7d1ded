//! Writing the counters and the node's statistics.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use super::Queue;
use crate::{
    claim::Source,
    counters::{SampleInputs, now_us},
    node::Node,
    topic,
};

impl Queue {
    /// Says which node this is, before its statistics are written.
    pub fn set_node(&self, node: Node) {
        self.sampler.begin(&node);
        // A second call is ignored: a process is one node.
        let _ = self.node.set(node);
    }

    fn node(&self) -> &Node {
        self.node.get_or_init(Node::default)
    }

    /// Writes the counters, at an interval, for ever. While there are no calls and no held pops, it
    /// writes only the node's statistics, once a minute.
    pub async fn run_counters(self: Arc<Self>, interval: Duration) {
        loop {
            let began = Instant::now();
            tokio::time::sleep(interval).await;
            self.sampler.late(began.elapsed().saturating_sub(interval));
            self.sample_held_pops();
            self.write(false).await;
        }
    }

    /// Writes everything counted so far: at the end of the process and on request.
    pub async fn write_counts(&self) {
        self.sample_held_pops();
        self.write(true).await;
    }

    /// Pops by namespace or task are left out: they wait for no queue in particular.
    fn sample_held_pops(&self) {
        let mut held: HashMap<String, i64> = HashMap::new();
        for waiting in self.engine.waiting(topic::DOOR) {
            if let Some(Source::Queue { queue, .. }) = topic::source(&waiting.topic) {
                let count = held.entry(queue).or_default();
                *count += i64::try_from(waiting.waiters).unwrap_or_default();
            }
        }
        self.held_pops.add(now_us(), held);
    }

    async fn write(&self, so_far: bool) {
        let load = self.store.load();
        self.counters.count_store_failures(load.failures);
        let counts = self.counters.take();
        if !counts.is_empty()
            && let Err(error) = self
                .store
                .add_counts(counts.clone())
                .commit(&self.bus)
                .await
        {
            tracing::warn!(%error, "the counters cannot be written; it is tried again");
            self.counters.put_back(counts);
            return;
        }
        let held_pops = self.held_pops.take(so_far);
        let node = self.node();
        if !held_pops.is_empty() {
            let place = (node.hostname.clone(), node.port.into());
            if let Err(error) = self
                .store
                .set_held_pops(place, held_pops.clone())
                .commit(&self.bus)
                .await
            {
                tracing::warn!(%error, "the numbers of held pops cannot be written; it is tried again");
                self.held_pops.put_back(held_pops);
                return;
            }
        }
        if so_far || self.sampler.is_due(now_us()) {
            let inputs = SampleInputs {
                now_us: now_us(),
                load,
                held: self.engine.held(),
                messages: self.counters.take_processed(),
            };
            let node_stats = self.sampler.sample(node, inputs);
            if let Err(error) = self
                .store
                .set_node_stats(node_stats)
                .commit(&self.bus)
                .await
            {
                tracing::warn!(%error, "the node's statistics cannot be written");
                self.counters.put_back_processed(inputs.messages);
            }
        }
    }
}
