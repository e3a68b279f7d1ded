//! What all producers and consumers of a run share, and what each of them writes down.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::Deserialize;

use super::history::{Group, History, Number, Time};
use crate::failures::Failures;
use crate::line::{Answer, Line, Lost, Target};

/// A call that is not held and takes longer has no answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The first is where transactions take from, the second where they push to.
pub(super) const QUEUES: [&str; 2] = ["verify-source", "verify-sink"];
const PARTITIONS: usize = 4;
/// The group of those who name none.
pub(super) const QUEUE_MODE: &str = "__QUEUE_MODE__";
const GROUPS: [(&str, bool); 3] = [
    (QUEUE_MODE, false),
    ("verify-group", false),
    ("verify-auto", true),
];
pub(super) const LEASE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Run {
    pub(super) seed: u64,
    pub(super) targets: Vec<Arc<Target>>,
    pub(super) routes: Routes,
    pub(super) unexpected: Failures,
    start: Instant,
    numbers: AtomicU64,
    stopping: AtomicBool,
    storm_until: AtomicU64,
}

/// What the server offers beyond push, pop and ack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Routes {
    pub(super) ack_batch: bool,
    pub(super) transaction: bool,
}

impl Run {
    pub(super) fn new(seed: u64, targets: Vec<Arc<Target>>, routes: Routes) -> Arc<Self> {
        Arc::new(Self {
            seed,
            targets,
            routes,
            unexpected: Failures::default(),
            start: Instant::now(),
            numbers: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
            storm_until: AtomicU64::new(0),
        })
    }

    pub(super) fn now(&self) -> Time {
        self.start.elapsed().as_micros() as Time
    }

    pub(super) fn number(&self) -> Number {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Until one lease from now, nobody acknowledges in time.
    pub(super) fn storm(&self) {
        let until = self.now() + LEASE.as_micros() as Time;
        self.storm_until.store(until, Ordering::Relaxed);
    }

    pub(super) fn is_stormy(&self) -> bool {
        self.now() < self.storm_until.load(Ordering::Relaxed)
    }
}

/// An empty history of the run's places and groups.
pub(super) fn blank_history() -> History {
    History {
        places: places()
            .map(|(queue, partition)| format!("{queue}/{partition}"))
            .collect(),
        groups: groups(),
        lease: LEASE,
        ..History::default()
    }
}

pub(super) fn groups() -> Vec<Group> {
    let group = |(name, auto_ack): (&str, bool)| Group {
        name: name.to_owned(),
        auto_ack,
    };
    GROUPS.map(group).into()
}

fn places() -> impl Iterator<Item = (&'static str, String)> {
    QUEUES
        .into_iter()
        .flat_map(|queue| (0..PARTITIONS).map(move |number| (queue, format!("p{number}"))))
}

/// Queue and partition of a place.
pub(super) fn address(place: usize) -> (&'static str, String) {
    (
        QUEUES[place / PARTITIONS],
        format!("p{}", place % PARTITIONS),
    )
}

pub(super) fn place_of(queue: &str, partition: &str) -> Option<usize> {
    places().position(|(known, name)| (known, &*name) == (queue, partition))
}

pub(super) fn places_of_queue(queue: usize) -> std::ops::Range<usize> {
    queue * PARTITIONS..(queue + 1) * PARTITIONS
}

/// One producer's or consumer's own part of the story.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) history: History,
    pub(super) tally: Tally,
}

impl Record {
    pub(super) fn append(&mut self, other: Self) {
        self.history.append(other.history);
        for (what, count) in other.tally.0 {
            *self.tally.0.entry(what).or_default() += count;
        }
    }
}

/// How often what has happened, as far as the history does not say it.
#[derive(Debug, Default, Clone, serde::Serialize)]
pub(super) struct Tally(pub(super) BTreeMap<&'static str, u64>);

impl Tally {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// Somebody who calls: at one node, until that fails.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) run: Arc<Run>,
    pub(super) random: StdRng,
    node: usize,
    line: Line,
}

/// What is known of a call that was not answered as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// Nothing was done.
    Refused,
    Unknown,
}

impl Caller {
    /// `name` makes its choices its own.
    pub(super) fn new(run: &Arc<Run>, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (run.seed, name).hash(&mut hasher);
        let mut random = StdRng::seed_from_u64(hasher.finish());
        let node = random.random_range(0..run.targets.len());
        Self {
            run: Arc::clone(run),
            random,
            line: Line::to(&run.targets[node]),
            node,
        }
    }

    pub(super) async fn get(&mut self, path: &str, held: Duration) -> Result<Answer, Failed> {
        let path = self.run.targets[self.node].path(path);
        let answer = self.line.get(&path, held + PATIENCE).await;
        self.judge(answer)
    }

    pub(super) async fn post(&mut self, path: &str, body: String) -> Result<Answer, Failed> {
        let path = self.run.targets[self.node].path(path);
        let answer = self.line.post(&path, Bytes::from(body), PATIENCE).await;
        self.judge(answer)
    }

    fn judge(&mut self, answer: Result<Answer, Lost>) -> Result<Answer, Failed> {
        let failed = match answer {
            Ok(answer) if answer.status.is_success() => return Ok(answer),
            Ok(answer) if answer.status == StatusCode::SERVICE_UNAVAILABLE => {
                // Among the reasons for a 503, these two say that nothing was done.
                match problem_type(&answer) {
                    Some("urn:wakeline:store-unavailable" | "urn:wakeline:overloaded") => {
                        Failed::Refused
                    }
                    _ => Failed::Unknown,
                }
            }
            Ok(answer) if answer.status.is_client_error() => {
                // Nobody here makes such a mistake.
                self.run.unexpected.add("a call", &answer.shown());
                Failed::Refused
            }
            Ok(_) | Err(Lost::Unknown(_)) => Failed::Unknown,
            Err(Lost::NotSent(_)) => Failed::Refused,
        };
        self.change_node();
        Err(failed)
    }

    pub(super) fn change_node(&mut self) {
        self.node = (self.node + 1) % self.run.targets.len();
        self.hang_up();
    }

    pub(super) fn hang_up(&mut self) {
        self.line = Line::to(&self.run.targets[self.node]);
    }

    /// After a failure, so that a server that starts is not hammered.
    pub(super) async fn pause(&mut self) {
        let millis = self.random.random_range(20..120);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

fn problem_type(answer: &Answer) -> Option<&str> {
    #[derive(Deserialize)]
    struct Problem<'a> {
        #[serde(rename = "type", borrow)]
        kind: &'a str,
    }
    let problem: Problem<'_> = serde_json::from_slice(&answer.body).ok()?;
    Some(problem.kind)
}
