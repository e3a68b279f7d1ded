//! The statistics of a node, sampled about once a minute.

use std::{
    num::NonZero,
    sync::{Mutex, PoisonError},
    thread::available_parallelism,
    time::{Duration, Instant},
};

use wakeline_store::Load;

use super::row::MINUTE_US;
use crate::{
    claiming::duration_to_us,
    node::{Node, Process},
};

/// The processor's share is not measured over a shorter time.
const SHORTEST: Duration = Duration::from_secs(1);

/// What a node used in one minute. `None`: the node's system does not tell the number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeStats {
    pub minute_us: i64,
    pub hostname: String,
    pub port: i64,
    /// Hundredths of a percent of all processors that the node may use, in the program and in the
    /// kernel for it.
    pub cpu_user: Option<i64>,
    pub cpu_system: Option<i64>,
    pub resident_bytes: Option<i64>,
    pub virtual_bytes: Option<i64>,
    pub connections: i64,
    pub busy_connections: i64,
    /// Requests that are held, of all doors.
    pub held: i64,
    /// How late the node's own timer was, on average and at most.
    pub late_us: i64,
    pub max_late_us: i64,
    /// Messages pushed and acknowledged; this one adds up within a minute.
    pub messages: i64,
}

impl NodeStats {
    /// The numbers, under the names of their columns.
    pub fn numbers(&self) -> impl Iterator<Item = (&'static str, Option<i64>)> {
        [
            ("cpu_user", self.cpu_user),
            ("cpu_system", self.cpu_system),
            ("resident_bytes", self.resident_bytes),
            ("virtual_bytes", self.virtual_bytes),
            ("connections", Some(self.connections)),
            ("busy_connections", Some(self.busy_connections)),
            ("held", Some(self.held)),
            ("late_us", Some(self.late_us)),
            ("max_late_us", Some(self.max_late_us)),
            ("messages", Some(self.messages)),
        ]
        .into_iter()
    }
}

#[derive(Debug, Default)]
pub struct NodeStatsSampler(Mutex<LastSample>);

#[derive(Debug, Default)]
struct LastSample {
    minute_us: i64,
    measured: Option<(Instant, Process)>,
    cpu: Option<(i64, i64)>,
    late: Vec<Duration>,
}

/// The numbers that the sampler does not measure itself.
#[derive(Clone, Copy, Debug)]
pub struct SampleInputs {
    pub now_us: i64,
    pub load: Load,
    pub held: usize,
    pub messages: i64,
}

impl NodeStatsSampler {
    fn with<T>(&self, change: impl FnOnce(&mut LastSample) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts to measure the processor's share.
    pub fn begin(&self, node: &Node) {
        self.with(|last| last.measured = (node.process)().map(|process| (Instant::now(), process)));
    }

    /// Records how late a timer was.
    pub fn late(&self, by: Duration) {
        self.with(|last| {
            if last.late.len() < 1_000 {
                last.late.push(by);
            }
        });
    }

    /// Whether this minute has no sample yet.
    #[must_use]
    pub fn is_due(&self, now_us: i64) -> bool {
        self.with(|last| last.minute_us != now_us / MINUTE_US * MINUTE_US)
    }

    pub fn sample(&self, node: &Node, inputs: SampleInputs) -> NodeStats {
        let process = (node.process)();
        self.with(|last| {
            last.minute_us = inputs.now_us / MINUTE_US * MINUTE_US;
            last.measure(process);
            let late = std::mem::take(&mut last.late);
            let count = u32::try_from(late.len()).unwrap_or(u32::MAX).max(1);
            let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
            NodeStats {
                minute_us: last.minute_us,
                hostname: node.hostname.clone(),
                port: node.port.into(),
                cpu_user: last.cpu.map(|(user, _)| user),
                cpu_system: last.cpu.map(|(_, system)| system),
                resident_bytes: process.map(|process| process.resident_bytes),
                virtual_bytes: process.map(|process| process.virtual_bytes),
                connections: number(inputs.load.connections),
                busy_connections: number(inputs.load.busy),
                held: number(inputs.held),
                late_us: duration_to_us(late.iter().sum::<Duration>() / count),
                max_late_us: duration_to_us(late.into_iter().max().unwrap_or_default()),
                messages: inputs.messages,
            }
        })
    }
}

impl LastSample {
    fn measure(&mut self, process: Option<Process>) {
        let now = Instant::now();
        let Some(process) = process else { return };
        let Some((since, before)) = self.measured else {
            self.measured = Some((now, process));
            return;
        };
        let time = now - since;
        if time < SHORTEST && self.cpu.is_some() {
            return;
        }
        let processors = available_parallelism().map_or(1, NonZero::get);
        let share =
            |now: Duration, before: Duration| share(now.saturating_sub(before), time, processors);
        self.cpu = Some((
            share(process.user, before.user),
            share(process.system, before.system),
        ));
        self.measured = Some((now, process));
    }
}

/// The whole, in hundredths of a percent.
const WHOLE: i64 = 10_000;

/// Hundredths of a percent of the time of so many processors. A quota that is no whole number of
/// processors is rounded down, so more than all of them can be used.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a share is for reading"
)]
fn share(used: Duration, time: Duration, processors: usize) -> i64 {
    let share = used.as_secs_f64() / (time.as_secs_f64() * processors as f64).max(f64::EPSILON);
    ((share * WHOLE as f64).round() as i64).min(WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_in_hundredths_of_a_percent() {
        let second = Duration::from_secs(1);
        assert_eq!(share(second / 2, second, 1), 5_000);
        assert_eq!(share(second * 3, second * 2, 4), 3_750);
    }

    #[test]
    fn a_percentage_is_at_most_100() {
        let second = Duration::from_secs(1);
        assert_eq!(share(second * 4, second, 4), WHOLE);
        assert_eq!(share(second * 3, second * 2, 1), WHOLE);
    }

    #[test]
    fn a_minute_has_one_sample_unless_another_is_requested() {
        let sampler = NodeStatsSampler::default();
        let node = Node::default();
        let inputs = SampleInputs {
            now_us: 7 * MINUTE_US + 5,
            load: Load {
                connections: 4,
                busy: 1,
                failures: 9,
            },
            held: 3,
            messages: 8,
        };
        assert!(sampler.is_due(inputs.now_us));
        sampler.late(Duration::from_millis(2));
        sampler.late(Duration::from_millis(4));
        let node_stats = sampler.sample(&node, inputs);
        assert_eq!(
            node_stats,
            NodeStats {
                minute_us: 7 * MINUTE_US,
                hostname: "localhost".into(),
                connections: 4,
                busy_connections: 1,
                held: 3,
                late_us: 3_000,
                max_late_us: 4_000,
                messages: 8,
                ..NodeStats::default()
            }
        );
        assert!(!sampler.is_due(inputs.now_us));
        assert!(sampler.is_due(inputs.now_us + MINUTE_US));
        assert_eq!(sampler.sample(&node, inputs).late_us, 0);
    }
}
