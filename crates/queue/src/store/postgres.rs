//! The steps on PostgreSQL: one call of a function per batch. The functions are beside this file.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row, types::Type};
use uuid::Uuid;
use wakeline_bus::Due;
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batch, Batcher, RunError, WORKERS, Weigh},
};
use wakeline_wake::{Place, Waiting, Wake};

use super::{Store, Stored};
use crate::{
    ack::{Ack, Acked, Outcome},
    claim::{Claimed, PopRequest, Popped},
    message::{Message, NewMessage, Pushed},
    topic,
};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[
        include_str!("postgres/001_queue.sql"),
        include_str!("postgres/002_push.sql"),
        include_str!("postgres/003_pop.sql"),
        include_str!("postgres/004_ack.sql"),
    ],
};

#[derive(Debug)]
pub struct PostgresStore {
    postgres: Postgres,
    pushes: Batcher<Pushes>,
    pops: Batcher<Pops>,
    acks: Batcher<Acks>,
}

impl PostgresStore {
    #[must_use]
    pub fn new(postgres: Postgres) -> Self {
        Self {
            pushes: Batcher::start(&postgres, Pushes, WORKERS),
            pops: Batcher::start(&postgres, Pops, WORKERS),
            acks: Batcher::start(&postgres, Acks, WORKERS),
            postgres,
        }
    }
}

impl Store for PostgresStore {
    fn push(&self, messages: Arc<[NewMessage]>) -> BoxFuture<'_, Result<Stored, Error>> {
        self.pushes.submit(Push(messages)).boxed()
    }

    fn pop(
        &self,
        request: Arc<PopRequest>,
        lease: Uuid,
        time: Duration,
    ) -> BoxFuture<'_, Result<Popped, Error>> {
        self.pops
            .submit(Pop {
                request,
                lease,
                time,
            })
            .boxed()
    }

    fn ack(&self, ack: Arc<Ack>) -> BoxFuture<'_, Result<Acked, Error>> {
        self.acks.submit(OneAck(ack)).boxed()
    }

    fn hand_back(&self, claim: Arc<Claimed>) -> BoxFuture<'_, Result<bool, Error>> {
        async move {
            let rows = self
                .postgres
                .query(
                    "hand_back",
                    "SELECT wakeline.queue_hand_back($1, $2, $3, $4, $5)",
                    &[
                        (&claim.partition_id, Type::UUID),
                        (&claim.group, Type::TEXT),
                        (&claim.lease, Type::UUID),
                        (&claim.first, Type::INT8),
                        (&claim.end, Type::INT8),
                    ],
                )
                .await?;
            Ok(rows[0].get(0))
        }
        .boxed()
    }

    fn recheck(&self, waiting: Vec<Waiting>) -> BoxFuture<'_, Result<Vec<Due>, Error>> {
        async move {
            let places: Vec<(&str, Option<&str>, &str)> = waiting
                .iter()
                .filter_map(|at| {
                    let (queue, partition) = topic::parts(&at.topic)?;
                    Some((queue, partition, at.lane.name()))
                })
                .collect();
            let queues: Vec<&str> = places.iter().map(|place| place.0).collect();
            let partitions: Vec<Option<&str>> = places.iter().map(|place| place.1).collect();
            let groups: Vec<&str> = places.iter().map(|place| place.2).collect();
            let rows = self
                .postgres
                .query(
                    "recheck",
                    "SELECT place, due_ms FROM wakeline.queue_recheck($1, $2, $3)",
                    &[
                        (&queues, Type::TEXT_ARRAY),
                        (&partitions, Type::TEXT_ARRAY),
                        (&groups, Type::TEXT_ARRAY),
                    ],
                )
                .await?;
            Ok(rows
                .iter()
                .filter_map(|row| {
                    let at = &waiting[index(row, 0)?];
                    let place = Place::new(at.topic.clone(), at.lane.clone());
                    Some(Due {
                        place,
                        after: milliseconds(row.get(1)),
                    })
                })
                .collect())
        }
        .boxed()
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

#[derive(Debug)]
struct Pushes;

#[derive(Clone, Debug)]
struct Push(Arc<[NewMessage]>);

impl Weigh for Push {
    fn weight(&self) -> usize {
        self.0.len()
    }
}

impl Batch for Pushes {
    type Operation = Push;
    type Output = Stored;

    const KIND: &'static str = "push";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Push],
    ) -> BoxFuture<'a, Result<Vec<Self::Output>, RunError>> {
        async move {
            let messages: Vec<&NewMessage> = operations.iter().flat_map(|push| &*push.0).collect();
            let queues: Vec<&str> = messages.iter().map(|m| m.queue.as_str()).collect();
            let partitions: Vec<&str> = messages.iter().map(|m| m.partition.as_str()).collect();
            let ids: Vec<Uuid> = messages.iter().map(|m| m.id).collect();
            let transactions: Vec<&str> =
                messages.iter().map(|m| m.transaction_id.as_str()).collect();
            let traces: Vec<Option<Uuid>> = messages.iter().map(|m| m.trace_id).collect();
            let payloads: Vec<&str> = messages.iter().map(|m| &*m.payload).collect();
            let subs: Vec<Option<&str>> =
                messages.iter().map(|m| m.producer_sub.as_deref()).collect();
            let rows = client
                .query_typed(
                    "SELECT message_id, duplicate, is_new, woken
                     FROM wakeline.queue_push($1, $2, $3, $4, $5, $6, $7) ORDER BY item",
                    &[
                        (&queues, Type::TEXT_ARRAY),
                        (&partitions, Type::TEXT_ARRAY),
                        (&ids, Type::UUID_ARRAY),
                        (&transactions, Type::TEXT_ARRAY),
                        (&traces, Type::UUID_ARRAY),
                        (&payloads, Type::TEXT_ARRAY),
                        (&subs, Type::TEXT_ARRAY),
                    ],
                )
                .await?;
            if rows.len() != messages.len() {
                return Err(wrong("a row per message is expected"));
            }
            let mut rows = rows.iter().zip(messages);
            Ok(operations
                .iter()
                .map(|push| {
                    let mut wakes = Vec::new();
                    let pushed = rows
                        .by_ref()
                        .take(push.0.len())
                        .map(|(row, message)| {
                            wakes.extend(woken(row, message));
                            Pushed {
                                id: row.get(0),
                                duplicate: row.get(1),
                            }
                        })
                        .collect();
                    (pushed, wakes)
                })
                .collect())
        }
        .boxed()
    }
}

fn woken(row: &Row, message: &NewMessage) -> Vec<Wake> {
    if row.get(2) {
        return vec![topic::ready(&message.queue, &message.partition, None, 1)];
    }
    let groups: Option<Vec<&str>> = row.get(3);
    let ready = |group| topic::ready(&message.queue, &message.partition, Some(group), 1);
    groups.unwrap_or_default().into_iter().map(ready).collect()
}

#[derive(Debug)]
struct Pops;

#[derive(Clone, Debug)]
struct Pop {
    request: Arc<PopRequest>,
    lease: Uuid,
    time: Duration,
}

impl Weigh for Pop {}

impl Batch for Pops {
    type Operation = Pop;
    type Output = Popped;

    const KIND: &'static str = "pop";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Pop],
    ) -> BoxFuture<'a, Result<Vec<Popped>, RunError>> {
        async move {
            let requests = || operations.iter().map(|pop| &*pop.request);
            let queues: Vec<&str> = requests().map(|r| r.queue.as_str()).collect();
            let partitions: Vec<Option<&str>> =
                requests().map(|r| r.partition.as_deref()).collect();
            let groups: Vec<&str> = requests().map(|r| r.group.as_str()).collect();
            let batches: Vec<i64> = requests().map(|r| r.batch.into()).collect();
            let auto_acks: Vec<bool> = requests().map(|r| r.auto_ack).collect();
            let leases: Vec<Uuid> = operations.iter().map(|pop| pop.lease).collect();
            let times: Vec<i64> = operations
                .iter()
                .map(|pop| i64::try_from(pop.time.as_millis()).unwrap_or(i64::MAX))
                .collect();
            let rows = client
                .query_typed(
                    "SELECT request, partition_public_id, partition_name, first_position,
                         end_position, remaining, due_ms, message_id, transaction_id, trace_id,
                         payload, producer_sub, created_us
                     FROM wakeline.queue_pop($1, $2, $3, $4, $5, $6, $7)",
                    &[
                        (&queues, Type::TEXT_ARRAY),
                        (&partitions, Type::TEXT_ARRAY),
                        (&groups, Type::TEXT_ARRAY),
                        (&batches, Type::INT8_ARRAY),
                        (&auto_acks, Type::BOOL_ARRAY),
                        (&leases, Type::UUID_ARRAY),
                        (&times, Type::INT8_ARRAY),
                    ],
                )
                .await?;
            let mut found: Vec<Option<Popped>> = operations.iter().map(|_| None).collect();
            for row in &rows {
                let at = index(row, 0).ok_or_else(|| wrong("request"))?;
                let (Some(slot), Some(pop)) = (found.get_mut(at), operations.get(at)) else {
                    return Err(wrong("request"));
                };
                match slot {
                    None => *slot = Some(popped(row, pop)),
                    Some(Popped::Claimed(claimed)) => claimed.messages.push(message(row)),
                    Some(Popped::Empty { .. }) => return Err(wrong("a message of no claim")),
                }
            }
            found
                .into_iter()
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| wrong("a row per request is expected"))
        }
        .boxed()
    }
}

fn popped(row: &Row, pop: &Pop) -> Popped {
    let Some(partition_id) = row.get(1) else {
        return Popped::Empty {
            again: row.get::<_, Option<i64>>(6).map(milliseconds),
        };
    };
    Popped::Claimed(Claimed {
        queue: pop.request.queue.clone(),
        group: pop.request.group.clone(),
        partition: row.get(2),
        partition_id,
        lease: (!pop.request.auto_ack).then_some(pop.lease),
        time: row.get::<_, Option<i64>>(6).map(milliseconds),
        first: row.get(3),
        end: row.get(4),
        messages: Vec::new(),
        remaining: u32::try_from(row.get::<_, i64>(5)).unwrap_or_default(),
    })
}

fn message(row: &Row) -> Message {
    Message {
        id: row.get(7),
        transaction_id: row.get(8),
        trace_id: row.get(9),
        payload: row.get(10),
        producer_sub: row.get(11),
        created_us: row.get(12),
    }
}

#[derive(Debug)]
struct Acks;

#[derive(Clone, Debug)]
struct OneAck(Arc<Ack>);

impl Weigh for OneAck {}

impl Batch for Acks {
    type Operation = OneAck;
    type Output = Acked;

    const KIND: &'static str = "ack";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [OneAck],
    ) -> BoxFuture<'a, Result<Vec<Acked>, RunError>> {
        async move {
            let acks = || operations.iter().map(|ack| &*ack.0);
            let partitions: Vec<Uuid> = acks().map(|ack| ack.partition_id).collect();
            let groups: Vec<&str> = acks().map(|ack| ack.group.as_str()).collect();
            let transactions: Vec<&str> = acks().map(|ack| ack.transaction_id.as_str()).collect();
            let leases: Vec<Option<Uuid>> = acks().map(|ack| ack.lease).collect();
            let statuses: Vec<&str> = acks().map(|ack| ack.status.name()).collect();
            let errors: Vec<Option<&str>> = acks().map(|ack| ack.error.as_deref()).collect();
            let rows = client
                .query_typed(
                    "SELECT outcome, lease_released, dead, is_ready, queue_name, partition_name
                     FROM wakeline.queue_ack($1, $2, $3, $4, $5, $6) ORDER BY item",
                    &[
                        (&partitions, Type::UUID_ARRAY),
                        (&groups, Type::TEXT_ARRAY),
                        (&transactions, Type::TEXT_ARRAY),
                        (&leases, Type::UUID_ARRAY),
                        (&statuses, Type::TEXT_ARRAY),
                        (&errors, Type::TEXT_ARRAY),
                    ],
                )
                .await?;
            rows.iter().map(acked).collect()
        }
        .boxed()
    }
}

fn acked(row: &Row) -> Result<Acked, RunError> {
    let outcome = match row.get(0) {
        "done" => Outcome::Done {
            lease_released: row.get(1),
            dead: row.get(2),
        },
        "noop" => Outcome::AlreadyDone,
        "lease" => Outcome::LeaseLost,
        "unknown" => Outcome::Unknown,
        "passed" => Outcome::Passed,
        _ => return Err(wrong("outcome")),
    };
    let is_ready: bool = row.get(3);
    let ready = is_ready.then(|| (row.get(4), row.get(5)));
    Ok(Acked { outcome, ready })
}
