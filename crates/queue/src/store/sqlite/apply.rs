//! A write batch: its rows are loaded, it is applied to them, and what has changed is flushed.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use uuid::Uuid;

use super::unreadable;
use crate::{
    ack::Ack,
    apply::{
        self, AckedMessage, BatchState, Cursor, MessageFlag, Partition, PushedQueue, RetryPolicy,
    },
    deliveries::Deliveries,
    id,
    message::NewMessage,
    options::Options,
    queue_admin::parts_of_name,
    seal::Fingerprint,
    segment,
    write_batch::{BatchOutcome, WriteBatch},
};

pub(super) fn apply(connection: &Connection, batch: &WriteBatch, now: i64) -> Result<BatchOutcome> {
    let mut state = BatchState {
        now,
        ..BatchState::default()
    };
    (state.push_paused, state.key) = connection
        .prepare_cached("SELECT push_paused, key_fingerprint FROM queue_mode")?
        .query_row([], |row| {
            let key: Option<i64> = row.get("key_fingerprint")?;
            Ok((row.get("push_paused")?, key.map(Fingerprint)))
        })?;
    let destinations = destinations(connection, &batch.pushes, state.push_paused, now)?;
    for (message, destination) in batch.pushes.iter().zip(&destinations) {
        if let Some(number) = destination {
            load_partition(connection, &mut state, *number)?;
            load_transaction(connection, &mut state, *number, message)?;
        }
    }
    let targets = targets(connection, &mut state, &batch.acks)?;
    for lease in &batch.required {
        let is_alive = connection
            .prepare_cached("SELECT 1 FROM queue_cursor WHERE lease_id = ?1 AND ready_at > ?2")?
            .exists(params![lease, now])?;
        if is_alive {
            state.leases.insert(*lease);
        }
    }
    if let Some(change) = &batch.state {
        let is_known = connection
            .prepare_cached("SELECT 1 FROM queue_stream WHERE id = ?1")?
            .exists([change.stream])?;
        if is_known {
            state.streams.insert(change.stream);
        }
    }
    // While pushes are paused, an unknown partition is refused as paused, not as deleted.
    let paused = state.push_paused;
    let mut done = state.apply(batch, &destinations, &targets);
    if paused {
        refuse_as_paused(&mut done);
    }
    let mut groups = flush(connection, &state)?;
    let wakes = state.wakes_of_pushes(&destinations, &mut groups, &mut HashSet::new());
    done.wakes.extend(wakes);
    Ok(done)
}

/// The partitions of the messages. Each partition is looked up once.
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
            // No partition is created for messages that will be refused.
            None if is_paused => find(connection, message)?,
            None => Some(find_or_make(connection, message, now)?),
        };
        found.insert(name, destination);
        destinations.push(destination);
    }
    Ok(destinations)
}

/// The messages that are acknowledged. Each cursor is loaded once.
fn targets(
    connection: &Connection,
    state: &mut BatchState,
    acks: &[Ack],
) -> Result<Vec<Option<AckedMessage>>> {
    let mut found: HashMap<(i64, &str), Option<AckedMessage>> = HashMap::new();
    let mut targets = Vec::with_capacity(acks.len());
    for ack in acks {
        let name = (ack.partition, &*ack.group);
        let known = match found.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(load_cursor(connection, state, ack)?),
        };
        let target = match known {
            Some(target) => Some(AckedMessage {
                position: position(connection, ack)?,
                ..target.clone()
            }),
            None => None,
        };
        targets.push(target);
    }
    Ok(targets)
}

/// The position of the acknowledged message, if its transaction id is known.
fn position(connection: &Connection, ack: &Ack) -> Result<Option<i64>> {
    if let Some(at) = apply::position_in_server_id(ack.partition, &ack.transaction_id) {
        return Ok(Some(at));
    }
    connection
        .prepare_cached(
            "SELECT position FROM queue_transaction WHERE partition_id = ?1 AND hash = ?2",
        )?
        .query_row(
            params![ack.partition, id::hash(&ack.transaction_id)],
            |row| row.get("position"),
        )
        .optional()
}

fn refuse_as_paused(done: &mut BatchOutcome) {
    use crate::{message::PushRefusal, write_batch::Rejection};
    for pushed in &mut done.pushed {
        if *pushed == Err(PushRefusal::QueueDeleted) {
            *pushed = Err(PushRefusal::Paused);
        }
    }
    if let Some(Rejection::Push(_, refusal)) = &mut done.rejection {
        *refusal = PushRefusal::Paused;
    }
}

fn find(connection: &Connection, message: &NewMessage) -> Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT p.id FROM queue q JOIN queue_partition p ON p.queue_id = q.id
             WHERE q.name = ?1 AND p.name = ?2",
        )?
        .query_row([&message.queue, &message.partition], |row| row.get("id"))
        .optional()
}

/// A new partition gets cursors of all groups of its queue.
fn find_or_make(connection: &Connection, message: &NewMessage, now: i64) -> Result<i64> {
    if let Some(number) = find(connection, message)? {
        return Ok(number);
    }
    let queue_id = find_or_make_queue(connection, &message.queue, now)?;
    let ordinal: i64 = connection
        .prepare_cached(
            "UPDATE queue SET partitions = partitions + 1 WHERE id = ?1 RETURNING partitions",
        )?
        .query_row([queue_id], |row| row.get("partitions"))?;
    let number: i64 = connection
        .prepare_cached(
            "INSERT INTO queue_partition (queue_id, name, ordinal, created_at)
             VALUES (?1, ?2, ?3, ?4) RETURNING id",
        )?
        .query_row(params![queue_id, message.partition, ordinal, now], |row| {
            row.get("id")
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
        .query_row([name], |row| row.get("id"))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    let (namespace, task) = parts_of_name(name);
    let options = Options::default();
    let parameters = params![
        Uuid::new_v4(),
        name,
        namespace,
        task,
        now,
        options.lease_ms,
        options.retry_limit,
        options.retry_delay_ms,
        options.keeps_dead_letters,
        options.priority,
        options.delay_ms,
        options.window_ms,
        options.max_size,
        options.max_age_ms,
        options.age_limits_waiting,
        options.completed_retention_ms,
        options.is_sealed,
    ];
    connection
        .prepare_cached(
            "INSERT INTO queue (public_id, name, namespace, task, created_at, lease_ms, retry_limit,
                 retry_delay_ms, keeps_dead_letters, priority, delay_ms, window_ms, max_size,
                 max_age_ms, age_limits_waiting, completed_retention_ms, is_sealed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
             RETURNING id",
        )?
        .query_row(parameters, |row| row.get("id"))
}

fn load_partition(connection: &Connection, state: &mut BatchState, number: i64) -> Result<()> {
    if state.partitions.contains_key(&number) {
        return Ok(());
    }
    let read = |row: &Row<'_>| {
        Ok(Partition {
            name: row.get("partition")?,
            next: row.get("next_position")?,
            last_us: row.get("last_at")?,
            is_locked: true,
            queue: Arc::new(PushedQueue {
                id: row.get("queue_id")?,
                name: row.get("queue")?,
                namespace: row.get("namespace")?,
                task: row.get("task")?,
                delay_us: row.get::<_, i64>("delay_ms")?.saturating_mul(1_000),
                is_sealed: row.get("is_sealed")?,
                max_size: row.get("max_size")?,
            }),
        })
    };
    let partition = connection
        .prepare_cached(
            "SELECT p.name AS partition, p.next_position, p.last_at, p.queue_id, q.name AS queue,
                 q.namespace, q.task, q.delay_ms, q.is_sealed, q.max_size
             FROM queue_partition p JOIN queue q ON q.id = p.queue_id WHERE p.id = ?1",
        )?
        .query_row([number], read)
        .optional()?;
    let Some(partition) = partition else {
        return Ok(());
    };
    let queue = partition.queue.id;
    if partition.queue.max_size > 0 && !state.sizes.contains_key(&queue) {
        let size = connection
            .prepare_cached(
                "SELECT coalesce(sum(p.next_position - max(p.first_position, coalesce((
                     SELECT min(c.position) FROM queue_cursor c WHERE c.partition_id = p.id), 0))), 0)
                     AS size
                 FROM queue_partition p WHERE p.queue_id = ?1",
            )?
            .query_row([queue], |row| row.get("size"))?;
        state.sizes.insert(queue, size);
    }
    state.partitions.insert(number, partition);
    Ok(())
}

fn load_transaction(
    connection: &Connection,
    state: &mut BatchState,
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
                 ORDER BY s.last LIMIT 1) AS created_at
             FROM queue_transaction t WHERE t.partition_id = ?1 AND t.hash = ?2",
        )?
        .query_row(params![number, hash], |row| {
            Ok((
                row.get("position")?,
                row.get::<_, Option<i64>>("created_at")?,
            ))
        })
        .optional()?;
    if let Some((position, Some(created))) = known {
        state
            .known_transactions
            .insert((number, hash), (position, created));
    }
    Ok(())
}

fn load_cursor(
    connection: &Connection,
    state: &mut BatchState,
    ack: &Ack,
) -> Result<Option<AckedMessage>> {
    load_partition(connection, state, ack.partition)?;
    let read = |row: &Row<'_>| {
        let cursor = Cursor {
            position: row.get("position")?,
            ready_us: row.get("ready_at")?,
            lease: row.get("lease_id")?,
            leased_to: row.get("leased_to")?,
            nacked_lease: row.get("nacked_lease")?,
            flags_end: row.get("flags_end")?,
            deliveries: Deliveries::of_text(row.get::<_, Option<String>>("deliveries")?.as_deref()),
        };
        let target = AckedMessage {
            group: row.get("group_id")?,
            position: None,
            partition_end: row.get("next_position")?,
            retry: RetryPolicy {
                limit: row.get("retry_limit")?,
                delay_us: row.get::<_, i64>("retry_delay_ms")?.saturating_mul(1_000),
                keeps_dead_letters: row.get("keeps_dead_letters")?,
            },
        };
        Ok((cursor, target))
    };
    let found = connection
        .prepare_cached(
            "SELECT c.group_id, c.position, c.ready_at, c.lease_id, c.leased_to, c.nacked_lease,
                 c.flags_end, c.deliveries, p.next_position, q.retry_limit, q.retry_delay_ms, q.keeps_dead_letters
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
    if cursor.flags_end > cursor.position {
        let mut flags = connection.prepare_cached(
            "SELECT position, failures, is_dead FROM queue_message_flag
             WHERE partition_id = ?1 AND group_id = ?2 AND position >= ?3",
        )?;
        let mut rows = flags.query([key.0, key.1, cursor.position])?;
        while let Some(row) = rows.next()? {
            let flag = MessageFlag {
                failures: row.get("failures")?,
                is_dead: row.get("is_dead")?,
            };
            state
                .flags
                .insert((key.0, key.1, row.get("position")?), flag);
        }
    }
    state.cursors.entry(key).or_insert(cursor);
    Ok(Some(target))
}

/// Writes what has changed. Returns the groups that pushes have made ready, by partition.
fn flush(connection: &Connection, state: &BatchState) -> Result<HashMap<i64, Vec<String>>> {
    let mut groups: HashMap<i64, Vec<String>> = HashMap::new();
    for (number, segments) in &state.changes.segments {
        let partition = &state.partitions[number];
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
             RETURNING (SELECT name FROM queue_group WHERE id = group_id) AS group_name",
        )?;
        let names = readied.query_map([*number, ready], |row| row.get("group_name"))?;
        groups.insert(*number, names.collect::<Result<_>>()?);
    }
    for (number, hash, position) in &state.changes.transactions {
        connection
            .prepare_cached("INSERT INTO queue_transaction VALUES (?1, ?2, ?3)")?
            .execute(params![number, hash, position])?;
    }
    for (key, consumed) in &state.changes.consumed_by_cursor {
        move_cursor(connection, *key, &state.cursors[key], *consumed)?;
    }
    for (key, lease) in &state.changes.nacked_leases {
        connection
            .prepare_cached(
                "UPDATE queue_cursor SET nacked_lease = ?3 WHERE partition_id = ?1 AND group_id = ?2",
            )?
            .execute(params![key.0, key.1, lease])?;
    }
    flag(connection, state)?;
    for change in &state.changes.states {
        super::streams::write(connection, change, state.now)?;
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
                 flags_end = ?7, consumed = consumed + ?8, deliveries = ?9
             WHERE partition_id = ?1 AND group_id = ?2",
        )?
        .execute(params![
            key.0,
            key.1,
            cursor.position,
            cursor.ready_us,
            cursor.lease,
            cursor.leased_to,
            cursor.flags_end,
            consumed,
            cursor.deliveries.text(cursor.position)
        ])?;
    Ok(())
}

fn flag(connection: &Connection, state: &BatchState) -> Result<()> {
    for (place, new) in &state.changes.new_flags {
        connection
            .prepare_cached(
                "INSERT INTO queue_message_flag VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET failures = excluded.failures, is_dead = excluded.is_dead",
            )?
            .execute(params![
                place.0,
                place.1,
                place.2,
                new.flag.failures,
                new.flag.is_dead
            ])?;
        if new.is_kept {
            keep_dead(connection, state, *place, new)?;
        }
    }
    for key in &state.changes.cursors_past_flags {
        connection
            .prepare_cached(
                // A group that seeks back does not get its dead messages again.
                "DELETE FROM queue_message_flag
                 WHERE partition_id = ?1 AND group_id = ?2 AND position < ?3 AND NOT is_dead",
            )?
            .execute([key.0, key.1, state.cursors[key].position])?;
    }
    Ok(())
}

fn keep_dead(
    connection: &Connection,
    state: &BatchState,
    place: (i64, i64, i64),
    new: &apply::NewMessageFlag,
) -> Result<()> {
    let segment: Option<(i64, i64, String)> = connection
        .prepare_cached(
            "SELECT first, created_at, body FROM queue_segment
             WHERE partition_id = ?1 AND last >= ?2 ORDER BY last LIMIT 1",
        )?
        .query_row([place.0, place.2], |row| {
            Ok((row.get("first")?, row.get("created_at")?, row.get("body")?))
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
            new.flag.failures,
            new.error,
            state.now,
            created,
            new.transaction_id,
            message
        ])?;
    Ok(())
}
