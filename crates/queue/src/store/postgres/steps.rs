//! Steps in batches: one transaction of two round trips. The first locks and reads what all of them
//! concern, then the book decides, then the second writes and commits.

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
    book::{self, Book, Cursor, Mark, Partition, QueueFacts, Retry, Target},
    id,
    step::{Done, Step},
};

#[derive(Debug)]
pub(super) struct Steps;

/// A step and where its messages go.
#[derive(Clone, Debug)]
pub(super) struct PlacedStep {
    pub(super) step: Arc<Step>,
    pub(super) destinations: Vec<Option<i64>>,
}

impl Weigh for PlacedStep {
    fn weight(&self) -> usize {
        (self.step.pushes.len() + self.step.acks.len()).max(1)
    }
}

impl Batch for Steps {
    type Operation = PlacedStep;
    type Output = Done;

    const KIND: &'static str = "step";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        steps: &'a [PlacedStep],
    ) -> BoxFuture<'a, Result<Vec<Done>, RunError>> {
        async move {
            let done = run(client, steps).await;
            if done.is_err() {
                // What is broken is noticed by whoever uses the connection next.
                let _ = client.batch_execute("ROLLBACK").await;
            }
            done
        }
        .boxed()
    }
}

async fn run(client: &Client, steps: &[PlacedStep]) -> Result<Vec<Done>, RunError> {
    let (mut book, targets) = open(client, steps).await?;
    let mut targets = targets.into_iter();
    let mut done: Vec<Done> = steps
        .iter()
        .map(|placed| {
            let targets: Vec<_> = targets.by_ref().take(placed.step.acks.len()).collect();
            book.write(&placed.step, &placed.destinations, &targets)
        })
        .collect();
    let mut groups = close(client, &book).await?;
    let mut told = HashSet::new();
    for (placed, done) in steps.iter().zip(&mut done) {
        let woken = book.woken(&placed.destinations, &mut groups, &mut told);
        done.ready.extend(woken);
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

/// Begins the transaction; locks and reads.
async fn open(
    client: &Client,
    steps: &[PlacedStep],
) -> Result<(Book, Vec<Option<Target>>), RunError> {
    let acks: Vec<&Ack> = steps.iter().flat_map(|placed| &placed.step.acks).collect();
    let locks = Locks::of(steps, &acks);
    let known = Known::of(steps);
    let spoken = Spoken::of(&acks);
    let leases: Vec<Uuid> = steps
        .iter()
        .flat_map(|placed| placed.step.required.iter().copied())
        .collect();
    let streams: Vec<Uuid> = steps
        .iter()
        .filter_map(|placed| placed.step.state.as_ref().map(|state| state.stream))
        .collect();
    // In this order, so that nothing is read before the locks are had.
    let (_, partitions, duplicates, places, cursors, alive, existing) = pipelined!(
        client.batch_execute("BEGIN"),
        client.query_typed(
            "SELECT * FROM wakeline.queue_lock($1, $2, $3, $4)",
            &[
                (&locks.partitions, Type::INT8_ARRAY),
                (&locks.is_push, Type::BOOL_ARRAY),
                (&locks.positions, Type::INT8_ARRAY),
                (&locks.hashes, Type::UUID_ARRAY),
            ],
        ),
        query_if(
            client,
            !known.hashes.is_empty(),
            "SELECT item, at, created_us FROM wakeline.queue_known($1, $2)",
            &[
                (&known.partitions, Type::INT8_ARRAY),
                (&known.hashes, Type::UUID_ARRAY),
            ],
        ),
        query_if(
            client,
            !spoken.hashes.is_empty(),
            "SELECT item, at FROM wakeline.queue_positions($1, $2)",
            &[
                (&spoken.hashed_in, Type::INT8_ARRAY),
                (&spoken.hashes, Type::UUID_ARRAY),
            ],
        ),
        query_if(
            client,
            !acks.is_empty(),
            "SELECT * FROM wakeline.queue_cursors($1, $2)",
            &[
                (&spoken.partitions, Type::INT8_ARRAY),
                (&spoken.groups, Type::TEXT_ARRAY),
            ],
        ),
        query_if(
            client,
            !leases.is_empty(),
            "SELECT lease_id FROM wakeline.queue_leases($1)",
            &[(&leases, Type::UUID_ARRAY)],
        ),
        query_if(
            client,
            !streams.is_empty(),
            "SELECT id FROM wakeline.queue_stream WHERE id = ANY ($1) FOR SHARE",
            &[(&streams, Type::UUID_ARRAY)],
        ),
    )?;
    let mut book = Book {
        leases: alive.iter().map(|row| row.get(0)).collect(),
        streams: existing.iter().map(|row| row.get(0)).collect(),
        ..Book::default()
    };
    read_partitions(&mut book, &partitions);
    for row in &duplicates {
        let at = super::index(row, 0).ok_or_else(|| wrong("an item"))?;
        book.known.insert(
            (known.partitions[at], known.hashes[at]),
            (row.get(1), row.get(2)),
        );
    }
    let mut found: Vec<Option<Target>> = vec![None; spoken.partitions.len()];
    for row in &cursors {
        let at = super::index(row, 0).ok_or_else(|| wrong("a cursor"))?;
        found[at] = Some(read_cursor(&mut book, spoken.partitions[at], row));
    }
    let mut positions = spoken.positions;
    for row in &places {
        let at = super::index(row, 0).ok_or_else(|| wrong("an acknowledgement"))?;
        positions[spoken.hashed[at]] = Some(row.get(1));
    }
    let targets = spoken.cursors.iter().zip(positions);
    let targets = targets.map(|(cursor, at)| {
        let target = found[*cursor].as_ref()?;
        Some(Target {
            at,
            ..target.clone()
        })
    });
    let targets = targets.collect();
    Ok((book, targets))
}

/// What has to be locked: partitions that are pushed to, and acknowledged in.
#[derive(Default)]
struct Locks {
    partitions: Vec<i64>,
    is_push: Vec<bool>,
    positions: Vec<Option<i64>>,
    hashes: Vec<Option<Uuid>>,
}

impl Locks {
    fn of(steps: &[PlacedStep], acks: &[&Ack]) -> Self {
        let mut locks = Self::default();
        let pushed: HashSet<i64> = steps
            .iter()
            .flat_map(|placed| placed.destinations.iter().flatten().copied())
            .collect();
        for partition in pushed {
            locks.add(partition, true, None, None);
        }
        let mut farthest: HashMap<i64, i64> = HashMap::new();
        for ack in acks {
            match book::given_by_us(ack.partition, &ack.transaction_id) {
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

/// The transaction ids that producers gave.
#[derive(Default)]
struct Known {
    partitions: Vec<i64>,
    hashes: Vec<Uuid>,
}

impl Known {
    fn of(steps: &[PlacedStep]) -> Self {
        let mut known = Self::default();
        for placed in steps {
            for (message, destination) in placed.step.pushes.iter().zip(&placed.destinations) {
                if let (Some(partition), Some(transaction)) = (destination, &message.transaction_id)
                {
                    known.partitions.push(*partition);
                    known.hashes.push(id::hash(transaction));
                }
            }
        }
        known
    }
}

/// What is acknowledged.
#[derive(Default)]
struct Spoken<'a> {
    /// The cursors, each once.
    partitions: Vec<i64>,
    groups: Vec<&'a str>,
    /// Per acknowledgement: its cursor, and where the message is, if its id says so by itself.
    cursors: Vec<usize>,
    positions: Vec<Option<i64>>,
    /// The other acknowledgements, and by what their messages are found.
    hashed: Vec<usize>,
    hashed_in: Vec<i64>,
    hashes: Vec<Uuid>,
}

impl<'a> Spoken<'a> {
    fn of(acks: &[&'a Ack]) -> Self {
        let mut spoken = Self::default();
        let mut known: HashMap<(i64, &str), usize> = HashMap::new();
        for (index, ack) in acks.iter().enumerate() {
            let cursor = *known.entry((ack.partition, &ack.group)).or_insert_with(|| {
                spoken.partitions.push(ack.partition);
                spoken.groups.push(&ack.group);
                spoken.partitions.len() - 1
            });
            spoken.cursors.push(cursor);
            let position = book::given_by_us(ack.partition, &ack.transaction_id);
            spoken.positions.push(position);
            if position.is_none() {
                spoken.hashed.push(index);
                spoken.hashed_in.push(ack.partition);
                spoken.hashes.push(id::hash(&ack.transaction_id));
            }
        }
        spoken
    }
}

fn read_partitions(book: &mut Book, rows: &[Row]) {
    let mut queues: HashMap<i64, Arc<QueueFacts>> = HashMap::new();
    for row in rows {
        book.now = row.get("now_us");
        book.push_paused = row.get("push_paused");
        let queue_id: i64 = row.get("queue_id");
        let queue = queues.entry(queue_id).or_insert_with(|| {
            Arc::new(QueueFacts {
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
            book.sizes.insert(queue_id, size);
        }
        let number = row.get("partition_id");
        let partition = Partition {
            name: row.get("name"),
            queue: queue.clone(),
            next: row.get("next_position"),
            last_us: row.get("last_us"),
            is_locked: row.get("is_locked"),
        };
        book.partitions.insert(number, partition);
    }
}

fn read_cursor(book: &mut Book, partition: i64, row: &Row) -> Target {
    let group: i64 = row.get("group_id");
    let cursor = Cursor {
        position: row.get("position"),
        ready_us: row.get("ready_us"),
        lease: row.get("lease_id"),
        leased_to: row.get("leased_to"),
        marked_to: row.get("marked_to"),
    };
    let positions: Option<Vec<i64>> = row.get("mark_position");
    if let Some(positions) = positions {
        let failures: Vec<i32> = row.get("mark_failures");
        let dead: Vec<bool> = row.get("mark_dead");
        for ((position, failures), is_dead) in positions.into_iter().zip(failures).zip(dead) {
            let mark = Mark { failures, is_dead };
            book.marks.insert((partition, group, position), mark);
        }
    }
    book.cursors.insert((partition, group), cursor);
    Target {
        group,
        at: None,
        next: row.get("next_position"),
        retry: Retry {
            limit: row.get("retry_limit"),
            delay_us: row.get::<_, i64>("retry_delay_ms") * 1_000,
            keeps_dead: row.get("keeps_dead"),
        },
    }
}

/// Writes what has changed and commits. The groups that pushes have made ready, by partition.
async fn close(client: &Client, book: &Book) -> Result<HashMap<i64, Vec<String>>, RunError> {
    // Cursors before messages: one that has caught up by an acknowledgement is made ready by a push
    // of the same batch that came behind it.
    let ((), woken, (), (), ()) = pipelined!(
        super::write::move_cursors(client, book),
        append(client, book),
        super::write::mark(client, book),
        super::write::states(client, book),
        client.batch_execute("COMMIT"),
    )?;
    let mut groups: HashMap<i64, Vec<String>> = HashMap::new();
    for row in &woken {
        groups.entry(row.get(0)).or_default().push(row.get(1));
    }
    Ok(groups)
}

async fn append(client: &Client, book: &Book) -> Result<Vec<Row>, tokio_postgres::Error> {
    let segments = &book.changes.segments;
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
        let partition = &book.partitions[number];
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
    let transactions = &book.changes.transactions;
    let in_partitions: Vec<i64> = transactions.iter().map(|known| known.0).collect();
    let hashes: Vec<Uuid> = transactions.iter().map(|known| known.1).collect();
    let positions: Vec<i64> = transactions.iter().map(|known| known.2).collect();
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
