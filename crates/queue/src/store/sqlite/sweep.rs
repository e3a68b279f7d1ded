//! Removing what is too old, and what is left of deleted queues; a slice at a time.

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::unreadable;
use crate::{id, manage::Swept, segment};

type Victim = (i64, i64, i64, String);

pub(super) fn sweep(connection: &Connection, limit: u32, now: i64) -> Result<Swept> {
    let aged: Vec<Victim> = connection
        .prepare_cached(
            "SELECT s.partition_id, s.first, s.last, s.body
             FROM queue q
             JOIN queue_partition p ON p.queue_id = q.id AND p.first_position < p.next_position
             JOIN queue_segment s ON s.partition_id = p.id
             WHERE (q.age_ms IS NOT NULL OR q.completed_ms IS NOT NULL)
                 AND (s.created_at < ?1 - q.age_ms * 1000
                     OR (s.created_at < ?1 - q.completed_ms * 1000 AND s.last < (
                         SELECT min(c.position) FROM queue_cursor c WHERE c.partition_id = p.id)))
             ORDER BY s.partition_id, s.last LIMIT ?2",
        )?
        .query_map(params![now, limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_>>()?;
    let mut swept = Swept {
        messages: forget(connection, &aged)?,
        is_more: aged.len() >= limit as usize,
    };
    let gone: Option<i64> = connection
        .prepare_cached("SELECT queue_id FROM queue_gone LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    if let Some(queue_id) = gone {
        swept.is_more = true;
        swept.messages += sweep_gone(connection, queue_id, limit)?;
    }
    Ok(swept)
}

fn sweep_gone(connection: &Connection, queue_id: i64, limit: u32) -> Result<u64> {
    let left: Vec<Victim> = connection
        .prepare_cached(
            "SELECT s.partition_id, s.first, s.last, s.body
             FROM queue_partition p JOIN queue_segment s ON s.partition_id = p.id
             WHERE p.queue_id = ?1 LIMIT ?2",
        )?
        .query_map(params![queue_id, limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_>>()?;
    if !left.is_empty() {
        return forget(connection, &left);
    }
    let partitions: Vec<i64> = connection
        .prepare_cached("SELECT id FROM queue_partition WHERE queue_id = ?1 LIMIT ?2")?
        .query_map(params![queue_id, limit], |row| row.get(0))?
        .collect::<Result<_>>()?;
    for partition in &partitions {
        for statement in [
            "DELETE FROM queue_cursor WHERE partition_id = ?1",
            "DELETE FROM queue_mark WHERE partition_id = ?1",
            "DELETE FROM queue_transaction WHERE partition_id = ?1",
            "DELETE FROM queue_trace_name WHERE trace_id IN (
                 SELECT id FROM queue_trace WHERE partition_id = ?1)",
            "DELETE FROM queue_trace WHERE partition_id = ?1",
            "DELETE FROM queue_stream_state WHERE partition_id = ?1",
            "DELETE FROM queue_partition WHERE id = ?1",
        ] {
            connection.prepare_cached(statement)?.execute([partition])?;
        }
    }
    if partitions.is_empty() {
        connection.execute(
            "DELETE FROM queue_dead_letter WHERE queue_id = ?1",
            [queue_id],
        )?;
        connection.execute("DELETE FROM queue_gone WHERE queue_id = ?1", [queue_id])?;
    }
    Ok(0)
}

/// Forgets segments and what belongs to their messages. How many messages that were.
fn forget(connection: &Connection, victims: &[Victim]) -> Result<u64> {
    let mut messages = 0;
    for (partition, first, last, body) in victims {
        for transaction_id in segment::given_transactions(body).map_err(unreadable)? {
            connection
                .prepare_cached(
                    "DELETE FROM queue_transaction WHERE partition_id = ?1 AND hash = ?2",
                )?
                .execute(params![partition, id::hash(&transaction_id)])?;
        }
        connection
            .prepare_cached(
                "DELETE FROM queue_mark
                 WHERE partition_id = ?1 AND position >= ?2 AND position <= ?3",
            )?
            .execute([partition, first, last])?;
        connection
            .prepare_cached("DELETE FROM queue_segment WHERE partition_id = ?1 AND last = ?2")?
            .execute([partition, last])?;
        connection
            .prepare_cached(
                "UPDATE queue_partition SET first_position = max(first_position, ?2) WHERE id = ?1",
            )?
            .execute([*partition, last + 1])?;
        messages += u64::try_from(last - first + 1).unwrap_or_default();
    }
    Ok(messages)
}
