//! Write batches of many callers in one transaction of two round trips. The first locks and loads the
//! rows that they concern, then [`BatchState`] decides, then the second writes and commits.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row, types::Type};
use uuid::Uuid;
use wakeline_store::postgres::{Batch, RunError, Weigh, pipelined};

use super::wrong;
use crate::{
    ack::Ack,
    apply::{
        self, AckedMessage, BatchState, Cursor, MessageFlag, Partition, PushedQueue, RetryPolicy,
    },
    deliveries::Deliveries,
    id,
    seal::Fingerprint,
    write_batch::{BatchOutcome, WriteBatch},
};

#[derive(Debug)]
pub(super) struct WriteBatches;

/// A write batch with the partitions of its messages.
#[derive(Clone, Debug)]
pub(super) struct RoutedBatch {
    pub(super) batch: Arc<WriteBatch>,
    pub(super) destinations: Vec<Option<i64>>,
}

impl Weigh for RoutedBatch {
    fn weight(&self) -> usize {
        (self.batch.pushes.len() + self.batch.acks.len()).max(1)
    }
}

impl Batch for WriteBatches {
    type Operation = RoutedBatch;
    type Output = BatchOutcome;

    const KIND: &'static str = "write";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        batches: &'a [RoutedBatch],
    ) -> BoxFuture<'a, Result<Vec<BatchOutcome>, RunError>> {
        async move {
            let done = run(client, batches).await;
            if done.is_err() {
                // A broken connection is noticed by the next statement on it.
                let _ = client.batch_execute("ROLLBACK").await;
            }
            done
        }
        .boxed()
    }
}

async fn run(client: &Client, batches: &[RoutedBatch]) -> Result<Vec<BatchOutcome>, RunError> {
    let (mut state, targets) = load(client, batches).await?;
    let mut targets = targets.into_iter();
    let mut done: Vec<BatchOutcome> = batches
        .iter()
        .map(|routed| {
            let targets: Vec<_> = targets.by_ref().take(routed.batch.acks.len()).collect();
            state.apply(&routed.batch, &routed.destinations, &targets)
        })
        .collect();
    let mut groups = flush(client, &state).await?;
    let mut notified = HashSet::new();
    for (routed, done) in batches.iter().zip(&mut done) {
        let wakes = state.wakes_of_pushes(&routed.destinations, &mut groups, &mut notified);
        done.wakes.extend(wakes);
    }
    Ok(done)
}

/// A query that is left out when there is nothing to ask for.
pub(super) async fn query_if(
    client: &Client,
    is_needed: bool,
    statement: &str,
    parameters: &[(&(dyn tokio_postgres::types::ToSql + Sync), Type)],
) -> Result<Vec<Row>, tokio_postgres::Error> {
    if !is_needed {
        return Ok(Vec::new());
    }
    client.query_typed(statement, parameters).await
}

/// Begins the transaction; locks and loads.
async fn load(
    client: &Client,
    batches: &[RoutedBatch],
) -> Result<(BatchState, Vec<Option<AckedMessage>>), RunError> {
    let acks: Vec<&Ack> = batches
        .iter()
        .flat_map(|routed| &routed.batch.acks)
        .collect();
    let locks = Locks::of(batches, &acks);
    let given = DuplicateLookups::of(batches);
    let lookups = AckLookups::of(&acks);
    let leases: Vec<Uuid> = batches
        .iter()
        .flat_map(|routed| routed.batch.required.iter().copied())
        .collect();
    let streams: Vec<Uuid> = batches
        .iter()
        .filter_map(|routed| routed.batch.state.as_ref().map(|state| state.stream))
        .collect();
    // In this order, so that nothing is read before the locks are had.
    let (_, partitions, duplicates, located, cursors, alive, existing) = pipelined!(
        client.batch_execute("BEGIN"),
        client.query_typed(
            "SELECT * FROM wakeline.queue_lock_partitions($1, $2, $3, $4)",
            &[
                (&locks.partitions, Type::INT8_ARRAY),
                (&locks.is_push, Type::BOOL_ARRAY),
                (&locks.positions, Type::INT8_ARRAY),
                (&locks.hashes, Type::UUID_ARRAY),
            ],
        ),
        query_if(
            client,
            !given.hashes.is_empty(),
            "SELECT item, at, created_us FROM wakeline.queue_duplicates($1, $2)",
            &[
                (&given.partitions, Type::INT8_ARRAY),
                (&given.hashes, Type::UUID_ARRAY),
            ],
        ),
        query_if(
            client,
            !lookups.hashes.is_empty(),
            "SELECT item, at FROM wakeline.queue_positions($1, $2)",
            &[
                (&lookups.hashed_in, Type::INT8_ARRAY),
                (&lookups.hashes, Type::UUID_ARRAY),
            ],
        ),
        query_if(
            client,
            !acks.is_empty(),
            "SELECT * FROM wakeline.queue_lock_cursors($1, $2)",
            &[
                (&lookups.partitions, Type::INT8_ARRAY),
                (&lookups.groups, Type::TEXT_ARRAY),
            ],
        ),
        query_if(
            client,
            !leases.is_empty(),
            "SELECT lease_id FROM wakeline.queue_lock_leases($1)",
            &[(&leases, Type::UUID_ARRAY)],
        ),
        query_if(
            client,
            !streams.is_empty(),
            "SELECT id FROM wakeline.queue_stream WHERE id = ANY ($1) FOR SHARE",
            &[(&streams, Type::UUID_ARRAY)],
        ),
    )?;
    let mut state = BatchState {
        leases: alive.iter().map(|row| row.get("lease_id")).collect(),
        streams: existing.iter().map(|row| row.get("id")).collect(),
        ..BatchState::default()
    };
    partitions_from_rows(&mut state, &partitions);
    for row in &duplicates {
        let item = super::item(row).ok_or_else(|| wrong("a transaction id"))?;
        state.known_transactions.insert(
            (given.partitions[item], given.hashes[item]),
            (row.get("at"), row.get("created_us")),
        );
    }
    let mut found: Vec<Option<AckedMessage>> = vec![None; lookups.partitions.len()];
    for row in &cursors {
        let item = super::item(row).ok_or_else(|| wrong("a cursor"))?;
        found[item] = Some(cursor_from_row(&mut state, lookups.partitions[item], row));
    }
    let mut positions = lookups.positions;
    for row in &located {
        let item = super::item(row).ok_or_else(|| wrong("an acknowledgement"))?;
        positions[lookups.hashed[item]] = Some(row.get("at"));
    }
    let targets = lookups.cursors.iter().zip(positions);
    let targets = targets.map(|(cursor, position)| {
        let target = found[*cursor].as_ref()?;
        Some(AckedMessage {
            position,
            ..target.clone()
        })
    });
    let targets = targets.collect();
    Ok((state, targets))
}

/// The partitions to be locked: those that are pushed to or acknowledged in.
#[derive(Default)]
struct Locks {
    partitions: Vec<i64>,
    is_push: Vec<bool>,
    positions: Vec<Option<i64>>,
    hashes: Vec<Option<Uuid>>,
}

impl Locks {
    fn of(batches: &[RoutedBatch], acks: &[&Ack]) -> Self {
        let mut locks = Self::default();
        let pushed: HashSet<i64> = batches
            .iter()
            .flat_map(|routed| routed.destinations.iter().flatten().copied())
            .collect();
        for partition in pushed {
            locks.add(partition, true, None, None);
        }
        let mut farthest: HashMap<i64, i64> = HashMap::new();
        for ack in acks {
            match apply::position_in_server_id(ack.partition, &ack.transaction_id) {
                Some(position) => {
                    let known = farthest.entry(ack.partition).or_insert(position);
                    *known = position.max(*known);
                }
                None => {
                    let hash = id::hash(&ack.transaction_id);
                    locks.add(ack.partition, false, None, Some(hash));
                }
            }
        }
        for (partition, position) in farthest {
            locks.add(partition, false, Some(position), None);
        }
        locks
    }

    fn add(&mut self, partition: i64, is_push: bool, position: Option<i64>, hash: Option<Uuid>) {
        self.partitions.push(partition);
        self.is_push.push(is_push);
        self.positions.push(position);
        self.hashes.push(hash);
    }
}

/// Transaction ids of pushed messages, to be checked for duplicates.
#[derive(Default)]
struct DuplicateLookups {
    partitions: Vec<i64>,
    hashes: Vec<Uuid>,
}

impl DuplicateLookups {
    fn of(batches: &[RoutedBatch]) -> Self {
        let mut lookups = Self::default();
        for routed in batches {
            for (message, destination) in routed.batch.pushes.iter().zip(&routed.destinations) {
                if let (Some(partition), Some(transaction)) = (destination, &message.transaction_id)
                {
                    lookups.partitions.push(*partition);
                    lookups.hashes.push(id::hash(transaction));
                }
            }
        }
        lookups
    }
}

/// The cursors and messages that are acknowledged, as columns.
#[derive(Default)]
struct AckLookups<'a> {
    /// The cursors, each once.
    partitions: Vec<i64>,
    groups: Vec<&'a str>,
    /// Per acknowledgement: its cursor, and the message's position if its id contains it.
    cursors: Vec<usize>,
    positions: Vec<Option<i64>>,
    /// The other acknowledgements, and the hashes that find their messages.
    hashed: Vec<usize>,
    hashed_in: Vec<i64>,
    hashes: Vec<Uuid>,
}

impl<'a> AckLookups<'a> {
    fn of(acks: &[&'a Ack]) -> Self {
        let mut lookups = Self::default();
        let mut indexes: HashMap<(i64, &str), usize> = HashMap::new();
        for (index, ack) in acks.iter().enumerate() {
            let cursor = *indexes
                .entry((ack.partition, &ack.group))
                .or_insert_with(|| {
                    lookups.partitions.push(ack.partition);
                    lookups.groups.push(&ack.group);
                    lookups.partitions.len() - 1
                });
            lookups.cursors.push(cursor);
            let position = apply::position_in_server_id(ack.partition, &ack.transaction_id);
            lookups.positions.push(position);
            if position.is_none() {
                lookups.hashed.push(index);
                lookups.hashed_in.push(ack.partition);
                lookups.hashes.push(id::hash(&ack.transaction_id));
            }
        }
        lookups
    }
}

fn partitions_from_rows(state: &mut BatchState, rows: &[Row]) {
    let mut queues: HashMap<i64, Arc<PushedQueue>> = HashMap::new();
    for row in rows {
        state.now = row.get("now_us");
        state.push_paused = row.get("push_paused");
        state.key = row
            .get::<_, Option<i64>>("key_fingerprint")
            .map(Fingerprint);
        let queue_id: i64 = row.get("queue_id");
        let queue = queues.entry(queue_id).or_insert_with(|| {
            Arc::new(PushedQueue {
                id: queue_id,
                name: row.get("queue"),
                namespace: row.get("namespace"),
                task: row.get("task"),
                delay_us: row.get::<_, i64>("delay_ms") * 1_000,
                is_sealed: row.get("is_sealed"),
                max_size: row.get("max_size"),
            })
        });
        if let Some(size) = row.get("size") {
            state.sizes.insert(queue_id, size);
        }
        let number = row.get("partition_id");
        let partition = Partition {
            name: row.get("name"),
            queue: queue.clone(),
            next: row.get("next_position"),
            last_us: row.get("last_us"),
            is_locked: row.get("is_locked"),
        };
        state.partitions.insert(number, partition);
    }
}

fn cursor_from_row(state: &mut BatchState, partition: i64, row: &Row) -> AckedMessage {
    let group: i64 = row.get("group_id");
    let cursor = Cursor {
        position: row.get("position"),
        ready_us: row.get("ready_us"),
        lease: row.get("lease_id"),
        leased_to: row.get("leased_to"),
        nacked_lease: row.get("nacked_lease"),
        flags_end: row.get("flags_end"),
        deliveries: Deliveries::of_text(row.get("deliveries")),
    };
    let positions: Option<Vec<i64>> = row.get("flag_positions");
    if let Some(positions) = positions {
        let failures: Vec<i32> = row.get("flag_failures");
        let dead: Vec<bool> = row.get("flag_dead");
        for ((position, failures), is_dead) in positions.into_iter().zip(failures).zip(dead) {
            let flag = MessageFlag { failures, is_dead };
            state.flags.insert((partition, group, position), flag);
        }
    }
    state.cursors.insert((partition, group), cursor);
    AckedMessage {
        group,
        position: None,
        partition_end: row.get("next_position"),
        retry: RetryPolicy {
            limit: row.get("retry_limit"),
            delay_us: row.get::<_, i64>("retry_delay_ms") * 1_000,
            keeps_dead_letters: row.get("keeps_dead_letters"),
        },
    }
}

/// Writes what has changed and commits. Returns the groups that pushes have made ready, by partition.
async fn flush(client: &Client, state: &BatchState) -> Result<HashMap<i64, Vec<String>>, RunError> {
    // Cursors before messages: a push of the same transaction makes ready a cursor that an
    // acknowledgement has just moved to the end.
    let ((), (), woken, (), (), ()) = pipelined!(
        super::flush::move_cursors(client, state),
        super::flush::nacked_leases(client, state),
        append(client, state),
        super::flush::flag(client, state),
        super::flush::states(client, state),
        client.batch_execute("COMMIT"),
    )?;
    let mut groups: HashMap<i64, Vec<String>> = HashMap::new();
    for row in &woken {
        let woken = groups.entry(row.get("partition_id")).or_default();
        woken.push(row.get("group_name"));
    }
    Ok(groups)
}

async fn append(client: &Client, state: &BatchState) -> Result<Vec<Row>, tokio_postgres::Error> {
    let segments = &state.changes.segments;
    if segments.is_empty() {
        return Ok(Vec::new());
    }
    let mut partitions = Vec::with_capacity(segments.len());
    let mut next = Vec::with_capacity(segments.len());
    let mut last_us = Vec::with_capacity(segments.len());
    let mut ready_us = Vec::with_capacity(segments.len());
    let (mut of, mut first, mut last, mut only, mut bodies) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, segments) in segments {
        let partition = &state.partitions[number];
        partitions.push(*number);
        next.push(partition.next);
        last_us.push(partition.last_us);
        ready_us.push(partition.last_us + partition.queue.delay_us);
        for segment in segments {
            of.push(*number);
            first.push(segment.first);
            last.push(segment.last);
            only.push(None::<i64>);
            bodies.push(segment.body.text());
        }
    }
    let transactions = &state.changes.transactions;
    let in_partitions: Vec<i64> = transactions.iter().map(|given| given.0).collect();
    let hashes: Vec<Uuid> = transactions.iter().map(|given| given.1).collect();
    let positions: Vec<i64> = transactions.iter().map(|given| given.2).collect();
    client
        .query_typed(
            "SELECT partition_id, group_name
             FROM wakeline.queue_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            &[
                (&partitions, Type::INT8_ARRAY),
                (&next, Type::INT8_ARRAY),
                (&last_us, Type::INT8_ARRAY),
                (&ready_us, Type::INT8_ARRAY),
                (&of, Type::INT8_ARRAY),
                (&first, Type::INT8_ARRAY),
                (&last, Type::INT8_ARRAY),
                (&only, Type::INT8_ARRAY),
                (&bodies, Type::TEXT_ARRAY),
                (&in_partitions, Type::INT8_ARRAY),
                (&hashes, Type::UUID_ARRAY),
                (&positions, Type::INT8_ARRAY),
            ],
        )
        .await
}
