//! A step: the book is opened with the rows it concerns, written in, and closed.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use uuid::Uuid;

use super::unreadable;
use crate::{
    ack::Ack,
    book::{self, Book, Cursor, Mark, Partition, QueueFacts, Retry, Target},
    id,
    manage::parts_of_name,
    message::NewMessage,
    segment,
    step::{Done, Step},
};

pub(super) fn step(connection: &Connection, step: &Step, now: i64) -> Result<Done> {
    let mut book = Book {
        now,
        ..Book::default()
    };
    book.push_paused = connection
        .prepare_cached("SELECT push_paused FROM queue_mode")?
        .query_row([], |row| row.get(0))?;
    let destinations = destinations(connection, &step.pushes, book.push_paused, now)?;
    for (message, destination) in step.pushes.iter().zip(&destinations) {
        if let Some(number) = destination {
            open_partition(connection, &mut book, *number)?;
            open_transaction(connection, &mut book, *number, message)?;
        }
    }
    let targets = targets(connection, &mut book, &step.acks)?;
    for lease in &step.required {
        let is_alive = connection
            .prepare_cached("SELECT 1 FROM queue_cursor WHERE lease_id = ?1 AND ready_at > ?2")?
            .exists(params![lease, now])?;
        if is_alive {
            book.leases.insert(*lease);
        }
    }
    if let Some(state) = &step.state {
        let is_known = connection
            .prepare_cached("SELECT 1 FROM queue_stream WHERE id = ?1")?
            .exists([state.stream])?;
        if is_known {
            book.streams.insert(state.stream);
        }
    }
    // While pushes are paused an unknown partition is refused as paused, not as gone.
    let paused = book.push_paused;
    let mut done = book.write(step, &destinations, &targets);
    if paused {
        refuse_as_paused(&mut done);
    }
    let mut groups = close(connection, &book)?;
    let woken = book.woken(&destinations, &mut groups, &mut HashSet::new());
    done.ready.extend(woken);
    Ok(done)
}

/// Where the messages go. Those of one partition are looked for once.
fn destinations(
    connection: &Connection,
    messages: &[NewMessage],
    is_paused: bool,
    now: i64,
) -> Result<Vec<Option<i64>>> {
    let mut found: HashMap<(&str, &str), Option<i64>> = HashMap::new();
    let mut destinations = Vec::with_capacity(messages.len());
    for message in messages {
        let name = (&*message.queue, &*message.partition);
        let destination = match found.get(&name) {
            Some(known) => *known,
            // Nothing is made for what is refused anyway.
            None if is_paused => find(connection, message)?,
            None => Some(find_or_make(connection, message, now)?),
        };
        found.insert(name, destination);
        destinations.push(destination);
    }
    Ok(destinations)
}

/// What the acknowledgements are about. Each cursor is looked for once.
fn targets(connection: &Connection, book: &mut Book, acks: &[Ack]) -> Result<Vec<Option<Target>>> {
    let mut found: HashMap<(i64, &str), Option<Target>> = HashMap::new();
    let mut targets = Vec::with_capacity(acks.len());
    for ack in acks {
        let name = (ack.partition, &*ack.group);
        let known = match found.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(open_cursor(connection, book, ack)?),
        };
        let target = match known {
            Some(target) => Some(Target {
                at: position(connection, ack)?,
                ..target.clone()
            }),
            None => None,
        };
        targets.push(target);
    }
    Ok(targets)
}

/// Where the acknowledged message is, if its transaction id is known.
fn position(connection: &Connection, ack: &Ack) -> Result<Option<i64>> {
    if let Some(at) = book::given_by_us(ack.partition, &ack.transaction_id) {
        return Ok(Some(at));
    }
    connection
        .prepare_cached(
            "SELECT position FROM queue_transaction WHERE partition_id = ?1 AND hash = ?2",
        )?
        .query_row(
            params![ack.partition, id::hash(&ack.transaction_id)],
            |row| row.get(0),
        )
        .optional()
}

fn refuse_as_paused(done: &mut Done) {
    use crate::{message::Refusal, step::Rejection};
    for pushed in &mut done.pushed {
        if *pushed == Err(Refusal::Gone) {
            *pushed = Err(Refusal::Paused);
        }
    }
    if let Some(Rejection::Push(_, refusal)) = &mut done.rejection {
        *refusal = Refusal::Paused;
    }
}

fn find(connection: &Connection, message: &NewMessage) -> Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT p.id FROM queue q JOIN queue_partition p ON p.queue_id = q.id
             WHERE q.name = ?1 AND p.name = ?2",
        )?
        .query_row([&message.queue, &message.partition], |row| row.get(0))
        .optional()
}

/// Whoever has cursors in a queue has one in its new partition from the beginning.
fn find_or_make(connection: &Connection, message: &NewMessage, now: i64) -> Result<i64> {
    if let Some(number) = find(connection, message)? {
        return Ok(number);
    }
    let queue_id = find_or_make_queue(connection, &message.queue, now)?;
    let ordinal: i64 = connection
        .prepare_cached(
            "UPDATE queue SET partitions = partitions + 1 WHERE id = ?1 RETURNING partitions",
        )?
        .query_row([queue_id], |row| row.get(0))?;
    let number: i64 = connection
        .prepare_cached(
            "INSERT INTO queue_partition (queue_id, name, ordinal, created_at)
             VALUES (?1, ?2, ?3, ?4) RETURNING id",
        )?
        .query_row(params![queue_id, message.partition, ordinal, now], |row| {
            row.get(0)
        })?;
    connection
        .prepare_cached(
            "INSERT INTO queue_cursor (partition_id, group_id)
             SELECT ?1, id FROM queue_group WHERE queue_id = ?2",
        )?
        .execute([number, queue_id])?;
    Ok(number)
}

pub(super) fn find_or_make_queue(connection: &Connection, name: &str, now: i64) -> Result<i64> {
    let known = connection
        .prepare_cached("SELECT id FROM queue WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    let (namespace, task) = parts_of_name(name);
    connection
        .prepare_cached(
            "INSERT INTO queue (public_id, name, namespace, task, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5) RETURNING id",
        )?
        .query_row(params![Uuid::new_v4(), name, namespace, task, now], |row| {
            row.get(0)
        })
}

fn open_partition(connection: &Connection, book: &mut Book, number: i64) -> Result<()> {
    if book.partitions.contains_key(&number) {
        return Ok(());
    }
    let read = |row: &Row<'_>| {
        Ok(Partition {
            name: row.get(0)?,
            next: row.get(1)?,
            last_us: row.get(2)?,
            is_locked: true,
            queue: Arc::new(QueueFacts {
                id: row.get(3)?,
                name: row.get(4)?,
                namespace: row.get(5)?,
                task: row.get(6)?,
                delay_us: row.get::<_, i64>(7)?.saturating_mul(1_000),
                is_sealed: row.get(8)?,
                max_size: row.get(9)?,
            }),
        })
    };
    let partition = connection
        .prepare_cached(
            "SELECT p.name, p.next_position, p.last_at, q.id, q.name, q.namespace, q.task,
                 q.delay_ms, q.is_sealed, q.max_size
             FROM queue_partition p JOIN queue q ON q.id = p.queue_id WHERE p.id = ?1",
        )?
        .query_row([number], read)
        .optional()?;
    let Some(partition) = partition else {
        return Ok(());
    };
    let queue = partition.queue.id;
    if partition.queue.max_size > 0 && !book.sizes.contains_key(&queue) {
        let size = connection
            .prepare_cached(
                "SELECT coalesce(sum(p.next_position - max(p.first_position, coalesce((
                     SELECT min(c.position) FROM queue_cursor c WHERE c.partition_id = p.id), 0))), 0)
                 FROM queue_partition p WHERE p.queue_id = ?1",
            )?
            .query_row([queue], |row| row.get(0))?;
        book.sizes.insert(queue, size);
    }
    book.partitions.insert(number, partition);
    Ok(())
}

fn open_transaction(
    connection: &Connection,
    book: &mut Book,
    number: i64,
    message: &NewMessage,
) -> Result<()> {
    let Some(transaction_id) = &message.transaction_id else {
        return Ok(());
    };
    let hash = id::hash(transaction_id);
    let known = connection
        .prepare_cached(
            "SELECT t.position, (
                 SELECT s.created_at FROM queue_segment s
                 WHERE s.partition_id = t.partition_id AND s.last >= t.position
                 ORDER BY s.last LIMIT 1)
             FROM queue_transaction t WHERE t.partition_id = ?1 AND t.hash = ?2",
        )?
        .query_row(params![number, hash], |row| {
            Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?))
        })
        .optional()?;
    if let Some((position, Some(created))) = known {
        book.known.insert((number, hash), (position, created));
    }
    Ok(())
}

fn open_cursor(connection: &Connection, book: &mut Book, ack: &Ack) -> Result<Option<Target>> {
    open_partition(connection, book, ack.partition)?;
    let read = |row: &Row<'_>| {
        let group: i64 = row.get(0)?;
        let cursor = Cursor {
            position: row.get(1)?,
            ready_us: row.get(2)?,
            lease: row.get(3)?,
            leased_to: row.get(4)?,
            marked_to: row.get(5)?,
        };
        let target = Target {
            group,
            at: None,
            next: row.get(6)?,
            retry: Retry {
                limit: row.get(7)?,
                delay_us: row.get::<_, i64>(8)?.saturating_mul(1_000),
                keeps_dead: row.get(9)?,
            },
        };
        Ok((cursor, target))
    };
    let found = connection
        .prepare_cached(
            "SELECT g.id, c.position, c.ready_at, c.lease_id, c.leased_to, c.marked_to,
                 p.next_position, q.retry_limit, q.retry_delay_ms, q.keeps_dead
             FROM queue_partition p
             JOIN queue q ON q.id = p.queue_id
             JOIN queue_group g ON g.queue_id = q.id AND g.name = ?2
             JOIN queue_cursor c ON c.partition_id = p.id AND c.group_id = g.id
             WHERE p.id = ?1",
        )?
        .query_row(params![ack.partition, ack.group], read)
        .optional()?;
    let Some((cursor, target)) = found else {
        return Ok(None);
    };
    let key = (ack.partition, target.group);
    if cursor.marked_to > cursor.position {
        let mut marks = connection.prepare_cached(
            "SELECT position, failures, is_dead FROM queue_mark
             WHERE partition_id = ?1 AND group_id = ?2 AND position >= ?3",
        )?;
        let mut rows = marks.query([key.0, key.1, cursor.position])?;
        while let Some(row) = rows.next()? {
            let mark = Mark {
                failures: row.get(1)?,
                is_dead: row.get(2)?,
            };
            book.marks.insert((key.0, key.1, row.get(0)?), mark);
        }
    }
    book.cursors.entry(key).or_insert(cursor);
    Ok(Some(target))
}

/// Writes what has changed. The groups that pushes have made ready, by partition.
fn close(connection: &Connection, book: &Book) -> Result<HashMap<i64, Vec<String>>> {
    let mut groups: HashMap<i64, Vec<String>> = HashMap::new();
    for (number, segments) in &book.changes.segments {
        let partition = &book.partitions[number];
        let mut insert = connection.prepare_cached(
            "INSERT INTO queue_segment (partition_id, first, last, created_at, body)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for segment in segments {
            let body = segment.body.text();
            insert.execute(params![
                number,
                segment.first,
                segment.last,
                partition.last_us,
                body
            ])?;
        }
        connection
            .prepare_cached(
                "UPDATE queue_partition SET next_position = ?2, last_at = ?3 WHERE id = ?1",
            )?
            .execute(params![number, partition.next, partition.last_us])?;
        let ready = partition.last_us.saturating_add(partition.queue.delay_us);
        let mut readied = connection.prepare_cached(
            "UPDATE queue_cursor SET ready_at = ?2 WHERE partition_id = ?1 AND ready_at IS NULL
             RETURNING (SELECT name FROM queue_group WHERE id = group_id)",
        )?;
        let names = readied.query_map([*number, ready], |row| row.get(0))?;
        groups.insert(*number, names.collect::<Result<_>>()?);
    }
    for (number, hash, position) in &book.changes.transactions {
        connection
            .prepare_cached("INSERT INTO queue_transaction VALUES (?1, ?2, ?3)")?
            .execute(params![number, hash, position])?;
    }
    for (key, consumed) in &book.changes.moved {
        move_cursor(connection, *key, &book.cursors[key], *consumed)?;
    }
    mark(connection, book)?;
    for change in &book.changes.states {
        super::streams::write(connection, change, book.now)?;
    }
    Ok(groups)
}

pub(super) fn move_cursor(
    connection: &Connection,
    key: (i64, i64),
    cursor: &Cursor,
    consumed: i64,
) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE queue_cursor SET position = ?3, ready_at = ?4, lease_id = ?5, leased_to = ?6,
                 marked_to = ?7, consumed = consumed + ?8
             WHERE partition_id = ?1 AND group_id = ?2",
        )?
        .execute(params![
            key.0,
            key.1,
            cursor.position,
            cursor.ready_us,
            cursor.lease,
            cursor.leased_to,
            cursor.marked_to,
            consumed
        ])?;
    Ok(())
}

fn mark(connection: &Connection, book: &Book) -> Result<()> {
    for (place, new) in &book.changes.marked {
        connection
            .prepare_cached(
                "INSERT INTO queue_mark VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET failures = excluded.failures, is_dead = excluded.is_dead",
            )?
            .execute(params![
                place.0,
                place.1,
                place.2,
                new.mark.failures,
                new.mark.is_dead
            ])?;
        if new.is_kept {
            keep_dead(connection, book, *place, new)?;
        }
    }
    for key in &book.changes.forgotten {
        connection
            .prepare_cached(
                // Whoever seeks back does not get the dead again.
                "DELETE FROM queue_mark
                 WHERE partition_id = ?1 AND group_id = ?2 AND position < ?3 AND NOT is_dead",
            )?
            .execute([key.0, key.1, book.cursors[key].position])?;
    }
    Ok(())
}

fn keep_dead(
    connection: &Connection,
    book: &Book,
    place: (i64, i64, i64),
    new: &book::NewMark,
) -> Result<()> {
    let segment: Option<(i64, i64, String)> = connection
        .prepare_cached(
            "SELECT first, created_at, body FROM queue_segment
             WHERE partition_id = ?1 AND last >= ?2 ORDER BY last LIMIT 1",
        )?
        .query_row([place.0, place.2], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((first, created, body)) = segment else {
        return Ok(());
    };
    let index = usize::try_from(place.2 - first).unwrap_or(usize::MAX);
    let Some(message) = segment::entry(&body, index).map_err(unreadable)? else {
        return Ok(());
    };
    connection
        .prepare_cached(
            "INSERT INTO queue_dead_letter (queue_id, partition_id, group_name, position, failures,
                 error, failed_at, created_at, transaction_id, message)
             SELECT g.queue_id, ?1, g.name, ?3, ?4, ?5, ?6, ?7, ?8, ?9
             FROM queue_group g WHERE g.id = ?2
             ON CONFLICT DO UPDATE SET failures = excluded.failures, error = excluded.error,
                 failed_at = excluded.failed_at",
        )?
        .execute(params![
            place.0,
            place.1,
            place.2,
            new.mark.failures,
            new.error,
            book.now,
            created,
            new.transaction_id,
            message
        ])?;
    Ok(())
}
