//! How a node is doing, sampled about once a minute.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use wakeline_store::Load;

use super::count::MINUTE_US;
use crate::node::{Node, Process};

/// The processor's share is not measured over less than this.
const SHORTEST: Duration = Duration::from_secs(1);

/// What a node used in one minute. What its system does not tell is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    pub minute_us: i64,
    pub hostname: String,
    pub port: i64,
    /// Hundredths of a percent of one processor, in the program and in the system for it.
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

#[derive(Debug, Default)]
pub struct Pulse(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    minute_us: i64,
    measured: Option<(Instant, Process)>,
    cpu: Option<(i64, i64)>,
    late: Vec<Duration>,
}

/// What else is known at the moment of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now_us: i64,
    pub load: Load,
    pub held: usize,
    pub messages: i64,
}

impl Pulse {
    fn with<T>(&self, change: impl FnOnce(&mut Last) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The processor's share is measured from here on.
    pub fn begin(&self, node: &Node) {
        self.with(|last| last.measured = (node.process)().map(|process| (Instant::now(), process)));
    }

    /// A timer was so late.
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

    pub fn sample(&self, node: &Node, moment: Moment) -> Vitals {
        let process = (node.process)();
        self.with(|last| {
            last.minute_us = moment.now_us / MINUTE_US * MINUTE_US;
            last.measure(process);
            let late = std::mem::take(&mut last.late);
            let count = u32::try_from(late.len()).unwrap_or(u32::MAX).max(1);
            let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
            Vitals {
                minute_us: last.minute_us,
                hostname: node.hostname.clone(),
                port: node.port.into(),
                cpu_user: last.cpu.map(|(user, _)| user),
                cpu_system: last.cpu.map(|(_, system)| system),
                resident_bytes: process.map(|process| process.resident_bytes),
                virtual_bytes: process.map(|process| process.virtual_bytes),
                connections: number(moment.load.connections),
                busy_connections: number(moment.load.busy),
                held: number(moment.held),
                late_us: micros(late.iter().sum::<Duration>() / count),
                max_late_us: micros(late.into_iter().max().unwrap_or_default()),
                messages: moment.messages,
            }
        })
    }
}

impl Last {
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
        let share = |now: Duration, before: Duration| share(now.saturating_sub(before), time);
        self.cpu = Some((
            share(process.user, before.user),
            share(process.system, before.system),
        ));
        self.measured = Some((now, process));
    }
}

/// Hundredths of a percent.
#[expect(clippy::cast_possible_truncation, reason = "a share is for reading")]
fn share(used: Duration, of: Duration) -> i64 {
    let share = used.as_secs_f64() / of.as_secs_f64().max(f64::EPSILON);
    (share * 10_000.0).round() as i64
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_in_hundredths_of_a_percent() {
        let second = Duration::from_secs(1);
        assert_eq!(share(second / 2, second), 5_000);
        assert_eq!(share(second * 3, second * 2), 15_000);
    }

    #[test]
    fn a_minute_has_one_sample_unless_more_are_asked_for() {
        let pulse = Pulse::default();
        let node = Node::default();
        let moment = Moment {
            now_us: 7 * MINUTE_US + 5,
            load: Load {
                connections: 4,
                busy: 1,
                failures: 9,
            },
            held: 3,
            messages: 8,
        };
        assert!(pulse.is_due(moment.now_us));
        pulse.late(Duration::from_millis(2));
        pulse.late(Duration::from_millis(4));
        let vitals = pulse.sample(&node, moment);
        assert_eq!(
            vitals,
            Vitals {
                minute_us: 7 * MINUTE_US,
                hostname: "localhost".into(),
                connections: 4,
                busy_connections: 1,
                held: 3,
                late_us: 3_000,
                max_late_us: 4_000,
                messages: 8,
                ..Vitals::default()
            }
        );
        assert!(!pulse.is_due(moment.now_us));
        assert!(pulse.is_due(moment.now_us + MINUTE_US));
        assert_eq!(pulse.sample(&node, moment).late_us, 0);
    }
}
