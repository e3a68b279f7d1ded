//! The steps on PostgreSQL. What reads and writes is in functions beside this file, one call for
//! many callers; what decides is the book and the cut, which SQLite shares.

mod claims;
mod curate;
mod manage;
mod places;
mod read;
mod record;
mod steps;
mod streams;
mod write;

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;
use wakeline_bus::{DueWake, Write};
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batcher, RunError, WORKERS},
};
use wakeline_wake::{WaitKey, WaitedKey};

use self::{
    claims::{Claims, Pop},
    places::Places,
    steps::{PlacedStep, Steps},
};
use super::{Store, wakes};
use crate::{
    claim::{Claimed, PopRequest, Popped, Source},
    message::{NewMessage, Refusal},
    step::{Done, Rejection, Step},
    topic,
};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[
        include_str!("postgres/001_tables.sql"),
        include_str!("postgres/002_steps.sql"),
        include_str!("postgres/003_claims.sql"),
        include_str!("postgres/004_manage.sql"),
        include_str!("postgres/005_push.sql"),
        include_str!("postgres/006_browse.sql"),
    ],
};

/// How often a push is tried again whose queue is deleted under it.
const GONE_TRIES: usize = 5;
/// So many seconds of waiting count as one of priority.
const AGING_SECONDS: f64 = 10.0;

/// Where `wakeline.push` tells the nodes of what was pushed by SQL.
pub async fn tell_channel(postgres: &Postgres, channel: &str) -> Result<(), Error> {
    let statement = "UPDATE wakeline.queue_mode SET channel = $1 WHERE channel <> $1";
    postgres
        .query("channel", statement, &[(&channel, Type::TEXT)])
        .await
        .map(drop)
}

#[derive(Clone, Debug)]
pub struct PostgresStore {
    postgres: Arc<Postgres>,
    places: Arc<Places>,
    steps: Batcher<Steps>,
    pops: Batcher<Claims>,
}

impl PostgresStore {
    #[must_use]
    pub fn new(postgres: Postgres) -> Self {
        let claims = Claims {
            aging: AGING_SECONDS,
        };
        Self {
            places: Arc::default(),
            steps: Batcher::start(&postgres, Steps, WORKERS),
            pops: Batcher::start(&postgres, claims, WORKERS),
            postgres: Arc::new(postgres),
        }
    }

    async fn key(&self, step: Arc<Step>) -> Result<Done, Error> {
        let destinations = self.places.resolve(&self.postgres, &step.pushes).await?;
        let placed = PlacedStep { step, destinations };
        self.steps.submit(placed).await
    }

    /// Puts the messages whose queue was deleted meanwhile into its successor.
    async fn place_until_there(&self, step: Arc<Step>) -> Result<Done, Error> {
        let mut done = self.key(step.clone()).await?;
        for _ in 0..GONE_TRIES {
            if let Some(Rejection::Push(_, Refusal::Gone)) = done.rejection {
                self.forget(&step.pushes);
                done = self.key(step.clone()).await?;
                continue;
            }
            let gone: Vec<usize> = (0..done.pushed.len())
                .filter(|index| done.pushed[*index] == Err(Refusal::Gone))
                .collect();
            if gone.is_empty() {
                break;
            }
            let pushes: Vec<NewMessage> = gone
                .iter()
                .map(|index| step.pushes[*index].clone())
                .collect();
            self.forget(&pushes);
            let is_partly_done = gone.len() < step.pushes.len() || !step.acks.is_empty();
            let again = Step {
                pushes,
                ..Step::default()
            };
            let again = self.key(Arc::new(again)).await;
            // The rest is on disk: nobody may be told that nothing was done, and the waiters of the
            // rest are woken by the recheck that follows an unknown outcome.
            let again = again.map_err(|error| match is_partly_done {
                true => Error::OutcomeUnknown(error.to_string()),
                false => error,
            })?;
            for (index, pushed) in gone.into_iter().zip(again.pushed) {
                done.pushed[index] = pushed;
            }
            done.ready.extend(again.ready);
        }
        Ok(done)
    }

    fn forget(&self, messages: &[NewMessage]) {
        for message in messages {
            self.places.forget(&message.queue);
        }
    }
}

impl Store for PostgresStore {
    fn step(&self, step: Arc<Step>) -> Write<Done> {
        let store = self.clone();
        let run = async move { store.place_until_there(step).await };
        Write::new(topic::DOOR, run, wakes::of_step)
    }

    fn pop(&self, request: Arc<PopRequest>, lease: Uuid, time: Duration) -> Write<Popped> {
        let pops = self.pops.clone();
        let pop = Pop {
            request,
            lease,
            time,
        };
        let run = async move { pops.submit(pop).await };
        Write::new(topic::DOOR, run, wakes::of_pop)
    }

    fn hand_back(&self, claim: Arc<Claimed>) -> Write<Vec<i64>> {
        let (postgres, claimed) = (self.postgres.clone(), claim.clone());
        let run = async move {
            let partitions: Vec<i64> = claim.parts.iter().map(|part| part.number).collect();
            let before: Vec<i64> = claim.parts.iter().map(|part| part.first).collect();
            let after: Vec<i64> = claim.parts.iter().map(|part| part.end).collect();
            let rows = postgres
                .query(
                    "hand_back",
                    "SELECT partition_id FROM wakeline.queue_hand_back($1, $2, $3, $4, $5)",
                    &[
                        (&partitions, Type::INT8_ARRAY),
                        (&claim.group_number, Type::INT8),
                        (&claim.lease, Type::UUID),
                        (&before, Type::INT8_ARRAY),
                        (&after, Type::INT8_ARRAY),
                    ],
                )
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        };
        let wakes = move |returned: &Vec<i64>| wakes::of_hand_back(&claimed, returned);
        Write::new(topic::DOOR, run, wakes)
    }

    fn extend(&self, lease: Uuid, time: Duration) -> Write<Option<(usize, i64)>> {
        let postgres = self.postgres.clone();
        let run = async move {
            let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
            let rows = postgres
                .query(
                    "extend",
                    "SELECT until_us FROM wakeline.queue_extend($1, $2)",
                    &[(&lease, Type::UUID), (&seconds, Type::INT8)],
                )
                .await?;
            let until = rows.iter().map(|row| row.get::<_, i64>(0)).max();
            Ok(until.map(|until| (rows.len(), until)))
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        async move {
            let mut at_queues = Columns::default();
            let mut matching = Columns::default();
            for (index, at) in waiting.iter().enumerate() {
                let group = at.group.name();
                match topic::source(&at.topic) {
                    Some(Source::Queue { queue, partition }) => {
                        at_queues.add(index, Some(queue), partition, group);
                    }
                    Some(Source::Matching { namespace, task }) => {
                        matching.add(index, namespace, task, group);
                    }
                    None => {}
                }
            }
            let mut due = Vec::new();
            let statements = [
                (
                    &at_queues,
                    "SELECT index, due_ms FROM wakeline.queue_recheck($1, $2, $3)",
                ),
                (
                    &matching,
                    "SELECT item, greatest(0, (due_us - (extract(epoch FROM clock_timestamp())
                         * 1000000)::bigint) / 1000)
                     FROM wakeline.queue_choose($1, $2, $3, 1)",
                ),
            ];
            for (places, statement) in statements {
                if places.index.is_empty() {
                    continue;
                }
                let rows = self
                    .postgres
                    .query(
                        "recheck",
                        statement,
                        &[
                            (&places.first, Type::TEXT_ARRAY),
                            (&places.second, Type::TEXT_ARRAY),
                            (&places.groups, Type::TEXT_ARRAY),
                        ],
                    )
                    .await?;
                due.extend(rows.iter().filter_map(|row| {
                    let at = &waiting[places.index[index(row, 0)?]];
                    Some(DueWake {
                        key: WaitKey::new(at.topic.clone(), at.group.clone()),
                        after: milliseconds(row.get(1)),
                    })
                }));
            }
            Ok(due)
        }
        .boxed()
    }
}

/// Places as the columns of a question.
#[derive(Debug, Default)]
struct Columns<'a> {
    index: Vec<usize>,
    first: Vec<Option<String>>,
    second: Vec<Option<String>>,
    groups: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn add(&mut self, index: usize, first: Option<String>, second: Option<String>, group: &'a str) {
        self.index.push(index);
        self.first.push(first);
        self.second.push(second);
        self.groups.push(group);
    }
}

/// Rows count from one, as `WITH ORDINALITY` does.
fn index(row: &Row, column: usize) -> Option<usize> {
    usize::try_from(row.get::<_, i64>(column))
        .ok()?
        .checked_sub(1)
}

fn milliseconds(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or_default())
}

fn wrong(text: &str) -> RunError {
    RunError::Answer(format!("the database's answer does not fit: {text}"))
}
