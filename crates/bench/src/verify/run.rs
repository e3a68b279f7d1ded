//! What all producers and consumers of a run share, and what each of them records.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::StatusCode;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::Deserialize;

use super::history::{Group, History, MessageNumber, Time};
use crate::connection::{Connection, RequestError, Response, ServerAddress};
use crate::failures::Failures;
use crate::server::REQUEST_TIMEOUT;

/// The first is where transactions take from, the second where they push to.
pub(super) const QUEUES: [&str; 2] = ["verify-source", "verify-sink"];
const PARTITIONS_PER_QUEUE: usize = 4;
/// The group of consumers that name none.
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
    pub(super) servers: Vec<Arc<ServerAddress>>,
    pub(super) routes: OfferedRoutes,
    pub(super) unexpected: Failures,
    start: Instant,
    numbers: AtomicU64,
    stopping: AtomicBool,
    storm_until: AtomicU64,
}

/// What the server offers beyond push, pop and ack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OfferedRoutes {
    pub(super) ack_batch: bool,
    pub(super) transaction: bool,
}

impl Run {
    pub(super) fn new(
        seed: u64,
        servers: Vec<Arc<ServerAddress>>,
        routes: OfferedRoutes,
    ) -> Arc<Self> {
        Arc::new(Self {
            seed,
            servers,
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

    pub(super) fn number(&self) -> MessageNumber {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// For the length of one lease, no consumer acknowledges in time.
    pub(super) fn start_lease_storm(&self) {
        let until = self.now() + LEASE.as_micros() as Time;
        self.storm_until.store(until, Ordering::Relaxed);
    }

    pub(super) fn is_lease_storm(&self) -> bool {
        self.now() < self.storm_until.load(Ordering::Relaxed)
    }
}

/// An empty history of the run's partitions and groups.
pub(super) fn blank_history() -> History {
    History {
        partitions: partitions()
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

fn partitions() -> impl Iterator<Item = (&'static str, String)> {
    QUEUES.into_iter().flat_map(|queue| {
        (0..PARTITIONS_PER_QUEUE).map(move |number| (queue, format!("p{number}")))
    })
}

/// The names of the queue and of the partition with this index.
pub(super) fn address(partition: usize) -> (&'static str, String) {
    (
        QUEUES[partition / PARTITIONS_PER_QUEUE],
        format!("p{}", partition % PARTITIONS_PER_QUEUE),
    )
}

pub(super) fn partition_of(queue: &str, partition: &str) -> Option<usize> {
    partitions().position(|(of, name)| (of, &*name) == (queue, partition))
}

pub(super) fn partitions_of_queue(queue: usize) -> std::ops::Range<usize> {
    queue * PARTITIONS_PER_QUEUE..(queue + 1) * PARTITIONS_PER_QUEUE
}

/// What one producer or consumer has recorded.
#[derive(Debug, Default)]
pub(super) struct CallerRecord {
    pub(super) history: History,
    pub(super) events: EventCounts,
}

impl CallerRecord {
    pub(super) fn append(&mut self, other: Self) {
        self.history.append(other.history);
        for (what, count) in other.events.0 {
            *self.events.0.entry(what).or_default() += count;
        }
    }
}

/// How often events happened that the history does not contain.
#[derive(Debug, Default, Clone, serde::Serialize)]
pub(super) struct EventCounts(pub(super) BTreeMap<&'static str, u64>);

impl EventCounts {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// The client of a producer or consumer: it calls one node until that fails.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) run: Arc<Run>,
    pub(super) random: StdRng,
    node: usize,
    connection: Connection,
}

/// The outcome of a call that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallFailure {
    /// Nothing was done.
    Refused,
    Unknown,
}

impl Caller {
    /// The random choices depend on the seed and on `name`.
    pub(super) fn new(run: &Arc<Run>, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (run.seed, name).hash(&mut hasher);
        let mut random = StdRng::seed_from_u64(hasher.finish());
        let node = random.random_range(0..run.servers.len());
        Self {
            run: Arc::clone(run),
            random,
            connection: Connection::to(&run.servers[node]),
            node,
        }
    }

    pub(super) async fn get(
        &mut self,
        path: &str,
        held: Duration,
    ) -> Result<Response, CallFailure> {
        let path = self.run.servers[self.node].path(path);
        let response = self.connection.get(&path, held + REQUEST_TIMEOUT).await;
        self.judge(response)
    }

    pub(super) async fn post(&mut self, path: &str, body: String) -> Result<Response, CallFailure> {
        let path = self.run.servers[self.node].path(path);
        let response = self
            .connection
            .post(&path, Bytes::from(body), REQUEST_TIMEOUT)
            .await;
        self.judge(response)
    }

    fn judge(&mut self, response: Result<Response, RequestError>) -> Result<Response, CallFailure> {
        let failed = match response {
            Ok(response) if response.status.is_success() => return Ok(response),
            Ok(response) if response.status == StatusCode::SERVICE_UNAVAILABLE => {
                // Of the problems with status 503, these two say that nothing was done.
                match problem_type(&response) {
                    Some("urn:wakeline:store-unavailable" | "urn:wakeline:overloaded") => {
                        CallFailure::Refused
                    }
                    _ => CallFailure::Unknown,
                }
            }
            Ok(response) if response.status.is_client_error() => {
                // No call of a run is wrong.
                self.run.unexpected.add("a call", &response.describe());
                CallFailure::Refused
            }
            Ok(_) | Err(RequestError::Unknown(_)) => CallFailure::Unknown,
            Err(RequestError::NotSent(_)) => CallFailure::Refused,
        };
        self.change_node();
        Err(failed)
    }

    pub(super) fn change_node(&mut self) {
        self.node = (self.node + 1) % self.run.servers.len();
        self.hang_up();
    }

    pub(super) fn hang_up(&mut self) {
        self.connection = Connection::to(&self.run.servers[self.node]);
    }

    /// After a failure, so that a server that starts is not hammered.
    pub(super) async fn pause(&mut self) {
        let millis = self.random.random_range(20..120);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

fn problem_type(response: &Response) -> Option<&str> {
    #[derive(Deserialize)]
    struct Problem<'a> {
        #[serde(rename = "type", borrow)]
        kind: &'a str,
    }
    let problem: Problem<'_> = serde_json::from_slice(&response.body).ok()?;
    Some(problem.kind)
}
