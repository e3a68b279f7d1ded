//! The store on PostgreSQL. Statements are calls of the functions beside this file, each for many
//! callers. The rules are in [`apply`](crate::apply) and [`takeable`](crate::takeable), which SQLite
//! shares.

mod apply;
mod claims;
mod flush;
mod message_admin;
mod partition_ids;
mod queue_admin;
mod read;
mod stats;
mod streams;

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;
use wakeline_bus::{DueWake, Wakes, Write};
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batcher, RunError, WORKERS},
};
use wakeline_wake::{WaitKey, WaitedKey};

use self::{
    apply::{RoutedBatch, WriteBatches},
    claims::{ClaimBatches, PopCall},
    partition_ids::PartitionIds,
};
use super::{Store, wakes};
use crate::{
    claim::{Claim, ClaimedPartition, PopOutcome, PopRequest, Source},
    message::{NewMessage, PushRefusal},
    topic,
    write_batch::{BatchOutcome, Rejection, WriteBatch},
};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[
        include_str!("postgres/001_tables.sql"),
        include_str!("postgres/002_views.sql"),
        include_str!("postgres/003_write_batches.sql"),
        include_str!("postgres/004_claims.sql"),
        include_str!("postgres/005_queue_admin.sql"),
        include_str!("postgres/006_message_admin.sql"),
        include_str!("postgres/007_streams.sql"),
        include_str!("postgres/008_sql_push.sql"),
    ],
};

/// How often a push is tried again if its queue is deleted at the same moment.
const DELETED_TRIES: usize = 5;
/// A queue that waits for so many seconds gains one of priority.
const AGING_SECONDS: f64 = 10.0;

/// Tells the database on which channel the nodes listen for pushes by SQL. Run once at the start, it
/// wakes nobody and may be repeated.
pub async fn set_notify_channel(postgres: &Postgres, channel: &str) -> Result<(), Error> {
    let statement = "UPDATE wakeline.queue_mode SET channel = $1 WHERE channel <> $1";
    postgres
        .query("channel", statement, &[(&channel, Type::TEXT)])
        .await
        .map(drop)
}

/// A parameter that a write keeps until it is committed.
type Parameter = (Box<dyn ToSql + Sync + Send>, Type);

/// The parameters of a statement, each with its type.
macro_rules! parameters {
    ($($value:expr => $kind:ident),* $(,)?) => {
        vec![$((Box::new($value) as Box<dyn ToSql + Sync + Send>, Type::$kind)),*]
    };
}
use parameters;

#[derive(Clone, Debug)]
pub struct PostgresStore {
    postgres: Arc<Postgres>,
    partition_ids: Arc<PartitionIds>,
    batches: Batcher<WriteBatches>,
    pops: Batcher<ClaimBatches>,
}

impl PostgresStore {
    #[must_use]
    pub fn new(postgres: Postgres) -> Self {
        let claims = ClaimBatches {
            aging: AGING_SECONDS,
        };
        Self {
            partition_ids: Arc::default(),
            batches: Batcher::start(&postgres, WriteBatches, WORKERS),
            pops: Batcher::start(&postgres, claims, WORKERS),
            postgres: Arc::new(postgres),
        }
    }

    /// A write that is one statement.
    fn write<T: Send + 'static>(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Parameter>,
        read: impl FnOnce(&[Row]) -> T + Send + 'static,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
    ) -> Write<T> {
        let postgres = self.postgres.clone();
        let run = async move {
            let parameters: Vec<(&(dyn ToSql + Sync), Type)> = parameters
                .iter()
                .map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone()))
                .collect();
            let rows = postgres.query(kind, statement, &parameters).await?;
            Ok(read(&rows))
        };
        Write::new(topic::DOOR, run, wakes)
    }

    async fn submit(&self, batch: Arc<WriteBatch>) -> Result<BatchOutcome, Error> {
        let partitions = &self.partition_ids;
        let destinations = partitions.resolve(&self.postgres, &batch.pushes).await?;
        let routed = RoutedBatch {
            batch,
            destinations,
        };
        self.batches.submit(routed).await
    }

    /// Stores the messages whose queue was deleted at the same moment in its successor.
    async fn submit_until_stored(&self, batch: Arc<WriteBatch>) -> Result<BatchOutcome, Error> {
        let mut done = self.submit(batch.clone()).await?;
        for _ in 0..DELETED_TRIES {
            if let Some(Rejection::Push(_, PushRefusal::QueueDeleted)) = done.rejection {
                self.forget(&batch.pushes);
                done = self.submit(batch.clone()).await?;
                continue;
            }
            let deleted: Vec<usize> = (0..done.pushed.len())
                .filter(|index| done.pushed[*index] == Err(PushRefusal::QueueDeleted))
                .collect();
            if deleted.is_empty() {
                break;
            }
            let pushes: Vec<NewMessage> = deleted
                .iter()
                .map(|index| batch.pushes[*index].clone())
                .collect();
            self.forget(&pushes);
            let is_partly_done = deleted.len() < batch.pushes.len() || !batch.acks.is_empty();
            let again = WriteBatch::of_pushes(pushes);
            let again = self.submit(Arc::new(again)).await;
            // The rest is on disk: the caller must not be told that nothing was done, and the waiters
            // of the rest are woken by the recheck that follows an unknown outcome.
            let again = again.map_err(|error| match is_partly_done {
                true => Error::OutcomeUnknown(error.to_string()),
                false => error,
            })?;
            for (index, pushed) in deleted.into_iter().zip(again.pushed) {
                done.pushed[index] = pushed;
            }
            done.wakes.extend(again.wakes);
        }
        Ok(done)
    }

    fn forget(&self, messages: &[NewMessage]) {
        for message in messages {
            self.partition_ids.forget(&message.queue);
        }
    }
}

impl Store for PostgresStore {
    fn apply(&self, batch: Arc<WriteBatch>) -> Write<BatchOutcome> {
        let store = self.clone();
        let run = async move { store.submit_until_stored(batch).await };
        Write::new(topic::DOOR, run, wakes::of_write_batch)
    }

    fn pop(&self, request: Arc<PopRequest>, lease: Uuid, time: Duration) -> Write<PopOutcome> {
        let pops = self.pops.clone();
        let pop = PopCall {
            request,
            lease,
            time,
        };
        let run = async move { pops.submit(pop).await };
        Write::new(topic::DOOR, run, wakes::of_pop)
    }

    fn release_claim(&self, claim: Arc<Claim>) -> Write<Vec<i64>> {
        let column = |of: fn(&ClaimedPartition) -> i64| claim.parts.iter().map(of).collect();
        let (partitions, before, after): (Vec<i64>, Vec<i64>, Vec<i64>) = (
            column(|part| part.number),
            column(|part| part.first),
            column(|part| part.end),
        );
        self.write(
            "release_claim",
            "SELECT partition_id FROM wakeline.queue_release_claim($1, $2, $3, $4, $5)",
            parameters![
                partitions => INT8_ARRAY,
                claim.group_number => INT8,
                claim.lease => UUID,
                before => INT8_ARRAY,
                after => INT8_ARRAY,
            ],
            |rows| rows.iter().map(|row| row.get("partition_id")).collect(),
            move |released: &Vec<i64>| wakes::of_release(&claim, released),
        )
    }

    fn extend(&self, lease: Uuid, time: Duration) -> Write<Option<(usize, i64)>> {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        self.write(
            "extend",
            "SELECT until_us FROM wakeline.queue_extend_lease($1, $2)",
            parameters![lease => UUID, seconds => INT8],
            |rows| {
                let ends = rows.iter().map(|row| row.get("until_us"));
                ends.max().map(|until: i64| (rows.len(), until))
            },
            wakes::none,
        )
    }

    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        async move {
            let mut at_queues = WaitKeyColumns::default();
            let mut matching = WaitKeyColumns::default();
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
                    "SELECT item, due_ms FROM wakeline.queue_recheck($1, $2, $3)",
                ),
                (
                    &matching,
                    "SELECT item, greatest(0, (due_us - (extract(epoch FROM clock_timestamp())
                         * 1000000)::bigint) / 1000) AS due_ms
                     FROM wakeline.queue_choose_queue($1, $2, $3, 1)",
                ),
            ];
            for (keys, statement) in statements {
                if keys.index.is_empty() {
                    continue;
                }
                let rows = self
                    .postgres
                    .query(
                        "recheck",
                        statement,
                        &[
                            (&keys.first, Type::TEXT_ARRAY),
                            (&keys.second, Type::TEXT_ARRAY),
                            (&keys.groups, Type::TEXT_ARRAY),
                        ],
                    )
                    .await?;
                due.extend(rows.iter().filter_map(|row| {
                    let at = &waiting[keys.index[item(row)?]];
                    Some(DueWake {
                        key: WaitKey::new(at.topic.clone(), at.group.clone()),
                        after: milliseconds(row.get("due_ms")),
                    })
                }));
            }
            Ok(due)
        }
        .boxed()
    }
}

/// Wait keys as the columns of a statement.
#[derive(Debug, Default)]
struct WaitKeyColumns<'a> {
    index: Vec<usize>,
    first: Vec<Option<String>>,
    second: Vec<Option<String>>,
    groups: Vec<&'a str>,
}

impl<'a> WaitKeyColumns<'a> {
    fn add(&mut self, index: usize, first: Option<String>, second: Option<String>, group: &'a str) {
        self.index.push(index);
        self.first.push(first);
        self.second.push(second);
        self.groups.push(group);
    }
}

/// The index of the item that a row is for: `WITH ORDINALITY` counts from one.
fn item(row: &Row) -> Option<usize> {
    let item = usize::try_from(row.get::<_, i64>("item"));
    item.ok()?.checked_sub(1)
}

fn milliseconds(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or_default())
}

fn wrong(text: &str) -> RunError {
    RunError::Answer(format!("the database's answer does not fit: {text}"))
}
