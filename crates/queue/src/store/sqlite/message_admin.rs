//! Administration of single messages.

use rusqlite::{Connection, OptionalExtension, Result, params};
use wakeline_bus::Write;

use super::{SqliteStore, unreadable};
use crate::{
    browse::{DeadLetterRetry, MessageAddress, NewTrace, RetryOutcome},
    id, segment,
    store::{MessageAdmin, wakes},
};

impl MessageAdmin for SqliteStore {
    fn delete_message(&self, address: MessageAddress) -> Write<bool> {
        self.write(
            "delete_message",
            move |connection, now| delete(connection, &address, now),
            |is_deleted| wakes::of_removal(*is_deleted),
        )
    }

    fn retry(&self, request: DeadLetterRetry) -> Write<RetryOutcome> {
        let requested = request.clone();
        self.write(
            "retry",
            move |connection, now| retry(connection, &request, now),
            move |retried| wakes::of_retry(&requested, retried),
        )
    }

    fn move_to_dead_letters(
        &self,
        address: MessageAddress,
        group: Option<String>,
        error: String,
    ) -> Write<u64> {
        self.write(
            "move_to_dead_letters",
            move |connection, now| {
                move_to_dead_letters(connection, &address, group.as_deref(), &error, now)
            },
            |groups| wakes::of_removal(*groups > 0),
        )
    }

    fn add_trace(&self, trace: NewTrace) -> Write<()> {
        self.write(
            "trace",
            move |connection, now| {
                connection.execute(
                    "INSERT INTO queue_trace VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    params![
                        trace.id,
                        trace.partition,
                        trace.transaction_id,
                        trace.group,
                        trace.event,
                        trace.data,
                        trace.worker,
                        now
                    ],
                )?;
                for name in &trace.names {
                    connection.execute(
                        "INSERT INTO queue_trace_name VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                        params![name, now, trace.id],
                    )?;
                }
                Ok(())
            },
            wakes::none,
        )
    }
}

/// The position of a message that is stored and has not been deleted.
fn position(connection: &Connection, address: &MessageAddress) -> Result<Option<i64>> {
    connection
        .query_row(
            "SELECT a.position FROM (
                 SELECT coalesce(?2, (SELECT t.position FROM queue_transaction t
                     WHERE t.partition_id = ?1 AND t.hash = ?3)) AS position) a
             JOIN queue_partition p ON p.id = ?1
             WHERE a.position >= p.first_position AND a.position < p.next_position
                 AND NOT EXISTS (SELECT 1 FROM queue_message_flag m
                     WHERE m.partition_id = ?1 AND m.group_id = 0 AND m.position = a.position)",
            params![address.partition, address.position(), address.hash()],
            |row| row.get("position"),
        )
        .optional()
}

fn delete(connection: &Connection, address: &MessageAddress, now: i64) -> Result<bool> {
    let position = position(connection, address)?;
    let letters = connection.execute(
        "DELETE FROM queue_dead_letter
         WHERE partition_id = ?1 AND (transaction_id = ?2 OR position = ?3)",
        params![address.partition, address.transaction_id, position],
    )?;
    let Some(position) = position else {
        return Ok(letters > 0);
    };
    connection.execute(
        "INSERT INTO queue_message_flag VALUES (?1, 0, ?2, 0, 1)",
        [address.partition, position],
    )?;
    connection.execute(
        "UPDATE queue_partition SET deletions_end = max(deletions_end, ?2) WHERE id = ?1",
        [address.partition, position + 1],
    )?;
    connection.execute(
        "DELETE FROM queue_transaction WHERE partition_id = ?1 AND hash = ?2",
        params![address.partition, address.hash()],
    )?;
    unblock_cursors(connection, address.partition, None, position, now)?;
    Ok(true)
}

/// Lets groups claim what follows a message that is gone, if their cursors are held back at it: the
/// delay of a retry was for that message alone.
fn unblock_cursors(
    connection: &Connection,
    partition: i64,
    group: Option<i64>,
    position: i64,
    now: i64,
) -> Result<()> {
    connection
        .execute(
            "UPDATE queue_cursor SET ready_at = ?4
             WHERE partition_id = ?1 AND (?2 IS NULL OR group_id = ?2) AND position = ?3
                 AND lease_id IS NULL AND ready_at > ?4",
            params![partition, group, position, now],
        )
        .map(drop)
}

fn retry(connection: &Connection, retry: &DeadLetterRetry, now: i64) -> Result<RetryOutcome> {
    let found: Option<(i64, i64, i64, Option<i64>)> = connection
        .query_row(
            "SELECT p.next_position, max(p.last_at, ?2) AS created_at, q.delay_ms, (
                 SELECT g.id FROM queue_group g WHERE g.queue_id = q.id AND g.name = d.group_name) AS group_id
             FROM queue_dead_letter d
             JOIN queue_partition p ON p.id = d.partition_id
             JOIN queue q ON q.id = p.queue_id
             WHERE d.id = ?1",
            [retry.letter, now],
            |row| {
                Ok((
                    row.get("next_position")?,
                    row.get("created_at")?,
                    row.get("delay_ms")?,
                    row.get("group_id")?,
                ))
            },
        )
        .optional()?;
    let Some((position, created, delay_ms, group)) = found else {
        return Ok(RetryOutcome::Gone);
    };
    let Some(group) = group else {
        return Ok(RetryOutcome::NoGroup);
    };
    connection.execute(
        "DELETE FROM queue_dead_letter WHERE id = ?1",
        [retry.letter],
    )?;
    // For another group the transaction id still names the old message.
    let has_others = connection
        .prepare("SELECT 1 FROM queue_cursor WHERE partition_id = ?1 AND group_id <> ?2")?
        .exists([retry.partition, group])?;
    let given = retry.transaction_id.as_deref().filter(|_| !has_others);
    let entry = if given.is_some() {
        &retry.entry_with_id
    } else {
        &retry.entry_without_id
    };
    connection.execute(
        "INSERT INTO queue_segment (partition_id, first, last, created_at, only_group, body)
         VALUES (?1, ?2, ?2, ?3, ?4, ?5)",
        params![
            retry.partition,
            position,
            created,
            group,
            format!("[{entry}]")
        ],
    )?;
    if let Some(given) = given {
        connection.execute(
            "INSERT INTO queue_transaction VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET position = excluded.position",
            params![retry.partition, id::hash(given), position],
        )?;
    }
    connection.execute(
        "UPDATE queue_partition SET next_position = ?2, last_at = ?3 WHERE id = ?1",
        [retry.partition, position + 1, created],
    )?;
    connection.execute(
        "UPDATE queue_cursor SET ready_at = ?2 WHERE partition_id = ?1 AND ready_at IS NULL",
        [
            retry.partition,
            created.saturating_add(delay_ms.saturating_mul(1_000)),
        ],
    )?;
    Ok(retry.done(created, position, given.is_some()))
}

fn move_to_dead_letters(
    connection: &Connection,
    address: &MessageAddress,
    group: Option<&str>,
    error: &str,
    now: i64,
) -> Result<u64> {
    let Some(position) = position(connection, address)? else {
        return Ok(0);
    };
    let (first, created, only, body): (i64, i64, Option<i64>, String) = connection.query_row(
        "SELECT first, created_at, only_group, body FROM queue_segment
         WHERE partition_id = ?1 AND last >= ?2 ORDER BY last LIMIT 1",
        [address.partition, position],
        |row| {
            Ok((
                row.get("first")?,
                row.get("created_at")?,
                row.get("only_group")?,
                row.get("body")?,
            ))
        },
    )?;
    let index = usize::try_from(position - first).unwrap_or(usize::MAX);
    let Some(entry) = segment::entry(&body, index).map_err(unreadable)? else {
        return Ok(0);
    };
    let groups: Vec<i64> = connection
        .prepare(
            "SELECT c.group_id FROM queue_cursor c
             JOIN queue_group g ON g.id = c.group_id
             LEFT JOIN queue_message_flag m ON m.partition_id = c.partition_id
                 AND m.group_id = c.group_id AND m.position = ?2
             WHERE c.partition_id = ?1 AND c.position <= ?2 AND (?3 IS NULL OR g.name = ?3)
                 AND (?4 IS NULL OR ?4 = c.group_id) AND NOT coalesce(m.is_dead, 0)
                 AND NOT (c.lease_id IS NOT NULL AND c.ready_at > ?5 AND ?2 < c.leased_to)",
        )?
        .query_map(
            params![address.partition, position, group, only, now],
            |row| row.get("group_id"),
        )?
        .collect::<Result<_>>()?;
    for group in &groups {
        connection.execute(
            "INSERT INTO queue_message_flag VALUES (?1, ?2, ?3, 0, 1)
             ON CONFLICT DO UPDATE SET is_dead = 1",
            [address.partition, *group, position],
        )?;
        connection.execute(
            "UPDATE queue_cursor SET flags_end = max(flags_end, ?3)
             WHERE partition_id = ?1 AND group_id = ?2",
            [address.partition, *group, position + 1],
        )?;
        unblock_cursors(connection, address.partition, Some(*group), position, now)?;
        connection.execute(
            "INSERT INTO queue_dead_letter (queue_id, partition_id, group_name, position, failures,
                 error, failed_at, created_at, transaction_id, message)
             SELECT g.queue_id, ?1, g.name, ?3, m.failures, ?4, ?5, ?6, ?7, ?8
             FROM queue_group g JOIN queue_message_flag m
                 ON m.partition_id = ?1 AND m.group_id = g.id AND m.position = ?3
             WHERE g.id = ?2
             ON CONFLICT DO NOTHING",
            params![
                address.partition,
                group,
                position,
                error,
                now,
                created,
                address.transaction_id,
                entry
            ],
        )?;
    }
    Ok(groups.len() as u64)
}
