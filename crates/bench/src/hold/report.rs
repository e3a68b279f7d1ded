//! The report, as JSON; its text is in [`text`].

mod text;

use std::time::Duration;

use serde::Serialize;

use super::args::{HoldArgs, Topics};
use super::wakes::{WakeAll, WakeTimes};
use crate::failures::FailureSummary;
use crate::meter::Reading;
use crate::percentiles::Percentiles;
use crate::units::{as_millis, show_bytes, show_duration};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    urls: Vec<String>,
    push_url: Option<String>,
    waiters: usize,
    topics: &'static str,
    http: u8,
    connections: usize,
    lease: bool,
    /// As the server counts them.
    held: Option<u64>,
    #[serde(rename = "openMs", serialize_with = "as_millis")]
    open_time: Duration,
    memory: Option<Memory>,
    idle: IdleUsage,
    wakes: Option<WakePercentiles>,
    pub(super) wake_all: Option<WakeAll>,
    pub(super) early_answers: usize,
    /// Still held by the server after all have hung up.
    pub(super) left_behind: Option<u64>,
    pub(super) failures: FailureSummary,
    targets: Vec<Target>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Memory {
    before_bytes: f64,
    after_bytes: f64,
    bytes_per_waiter: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IdleUsage {
    #[serde(rename = "watchedMs", serialize_with = "as_millis")]
    time: Duration,
    statements_per_second: Option<f64>,
    statements_source: Option<&'static str>,
    cpu_percent_of_one_core: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WakePercentiles {
    push_sent_to_answer: Option<Percentiles>,
    push_answered_to_answer: Option<Percentiles>,
    answered_before_push: usize,
    lost: usize,
}

#[derive(Debug, PartialEq, Serialize)]
struct Target {
    name: &'static str,
    wanted: String,
    measured: Option<String>,
    met: Option<bool>,
}

impl Memory {
    pub(super) fn between(before: Option<f64>, after: Option<f64>, waiters: usize) -> Option<Self> {
        let (before_bytes, after_bytes) = (before?, after?);
        Some(Self {
            before_bytes,
            after_bytes,
            bytes_per_waiter: (after_bytes - before_bytes) / waiters as f64,
        })
    }
}

impl IdleUsage {
    pub(super) fn between(from: &Reading, to: &Reading, time: Duration) -> Self {
        let per_second = |from: f64, to: f64| (to - from).max(0.0) / time.as_secs_f64();
        let statements = from.statements.zip(to.statements);
        Self {
            time,
            statements_per_second: statements.map(|(from, to)| per_second(from.count, to.count)),
            statements_source: statements.map(|(_, to)| to.source),
            cpu_percent_of_one_core: from
                .cpu_seconds
                .zip(to.cpu_seconds)
                .map(|(from, to)| 100.0 * per_second(from, to)),
        }
    }
}

impl Report {
    pub(super) fn new(
        args: &HoldArgs,
        open_time: Duration,
        held: Option<u64>,
        memory: Option<Memory>,
        idle: IdleUsage,
    ) -> Self {
        Self {
            urls: args.url.clone(),
            push_url: args.push_url.clone(),
            waiters: args.waiters,
            topics: match args.topics {
                Topics::One => "one",
                Topics::Each => "each",
            },
            http: args.http,
            connections: if args.http == 2 {
                args.connections
            } else {
                args.waiters
            },
            lease: args.lease,
            held,
            open_time,
            memory,
            idle,
            wakes: None,
            wake_all: None,
            early_answers: 0,
            left_behind: None,
            failures: FailureSummary::default(),
            targets: Vec::new(),
        }
    }

    pub(super) fn add_wakes(&mut self, wakes: WakeTimes) {
        self.wakes = Some(WakePercentiles {
            push_sent_to_answer: Percentiles::of(wakes.from_sent),
            push_answered_to_answer: Percentiles::of(wakes.from_pushed),
            answered_before_push: wakes.before_pushed,
            lost: wakes.lost,
        });
    }

    /// Compares with the targets that were given. What was not measured is neither met nor missed.
    pub(super) fn judge(&mut self, args: &HoldArgs) {
        let p99 = self
            .wakes
            .as_ref()
            .and_then(|wakes| wakes.push_answered_to_answer)
            .map(|times| times.p99);
        let mut judge =
            |name, wanted: Option<f64>, measured: Option<f64>, show: fn(f64) -> String| {
                if let Some(wanted) = wanted {
                    self.targets.push(Target {
                        name,
                        wanted: show(wanted),
                        measured: measured.map(show),
                        met: measured.map(|measured| measured <= wanted),
                    });
                }
            };
        judge(
            "p99, push to pop answer",
            args.target_p99.map(|time| time.as_secs_f64()),
            p99.map(|time| time.as_secs_f64()),
            |seconds| show_duration(Duration::from_secs_f64(seconds)),
        );
        judge(
            "memory per waiter",
            args.target_bytes,
            self.memory.map(|memory| memory.bytes_per_waiter),
            show_bytes,
        );
        judge(
            "idle statements",
            args.target_statements,
            self.idle.statements_per_second,
            |rate| format!("{rate:.2}/s"),
        );
        judge(
            "idle CPU",
            args.target_cpu,
            self.idle.cpu_percent_of_one_core,
            |percent| format!("{percent:.2} %"),
        );
    }

    /// Why the numbers are not to be trusted.
    pub(super) fn trouble(&self) -> Option<String> {
        let lost = self.wakes.as_ref().map_or(0, |wakes| wakes.lost);
        let wake_all = self.wake_all.as_ref();
        let unanswered = wake_all.map_or(0, |wake_all| wake_all.waiters - wake_all.answered);
        if let Some(failed) = self.failures.describe("requests failed") {
            Some(failed)
        } else if lost + unanswered > 0 {
            Some(format!(
                "{} pushed messages reached no waiter",
                lost + unanswered
            ))
        } else {
            None
        }
    }
}
