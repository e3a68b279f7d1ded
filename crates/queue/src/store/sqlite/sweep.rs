//! Removing old messages, and what is left of deleted queues; some segments at a time.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::unreadable;
use crate::{
    id,
    queue_admin::{SweepResult, SweptQueue},
    segment,
};

/// A segment to be removed.
struct SweptSegment {
    partition: i64,
    first: i64,
    last: i64,
    body: String,
}

impl SweptSegment {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            partition: row.get("partition_id")?,
            first: row.get("first")?,
            last: row.get("last")?,
            body: row.get("body")?,
        })
    }

    fn messages(&self) -> i64 {
        self.last - self.first + 1
    }
}

/// Why a segment is removed.
struct SweepReason {
    queue: String,
    /// Older than the queue allows, and not just consumed by every group.
    is_too_old: bool,
    age_limits_waiting: bool,
}

pub(super) fn sweep(connection: &Connection, limit: u32, now: i64) -> Result<SweepResult> {
    let aged: Vec<(SweptSegment, SweepReason)> = connection
        .prepare_cached(
            "SELECT s.partition_id, s.first, s.last, s.body, q.name,
                 coalesce(s.created_at < ?1 - q.max_age_ms * 1000, 0) AS is_too_old,
                 q.age_limits_waiting
             FROM queue q
             JOIN queue_partition p ON p.queue_id = q.id AND p.first_position < p.next_position
             JOIN queue_segment s ON s.partition_id = p.id
             WHERE (q.max_age_ms IS NOT NULL OR q.completed_retention_ms IS NOT NULL)
                 AND (s.created_at < ?1 - q.max_age_ms * 1000
                     OR (s.created_at < ?1 - q.completed_retention_ms * 1000 AND s.last < (
                         SELECT min(c.position) FROM queue_cursor c WHERE c.partition_id = p.id)))
             ORDER BY s.partition_id, s.last LIMIT ?2",
        )?
        .query_map(params![now, limit], |row| {
            let reason = SweepReason {
                queue: row.get("name")?,
                is_too_old: row.get("is_too_old")?,
                age_limits_waiting: row.get("age_limits_waiting")?,
            };
            Ok((SweptSegment::read(row)?, reason))
        })?
        .collect::<Result<_>>()?;
    let mut swept = SweepResult {
        messages: delete_segments(connection, aged.iter().map(|(segment, _)| segment))?,
        is_more: aged.len() >= limit as usize,
        queues: by_queue(&aged),
    };
    let deleted: Option<i64> = connection
        .prepare_cached("SELECT queue_id FROM queue_deleted LIMIT 1")?
        .query_row([], |row| row.get("queue_id"))
        .optional()?;
    if let Some(queue_id) = deleted {
        swept.is_more = true;
        swept.messages += sweep_deleted_queue(connection, queue_id, limit)?;
    }
    Ok(swept)
}

fn by_queue(aged: &[(SweptSegment, SweepReason)]) -> Vec<SweptQueue> {
    let mut queues: BTreeMap<&str, SweptQueue> = BTreeMap::new();
    for (segment, reason) in aged {
        let swept = queues.entry(&reason.queue).or_insert_with(|| SweptQueue {
            queue: reason.queue.clone(),
            ..SweptQueue::default()
        });
        let count = match (reason.is_too_old, reason.age_limits_waiting) {
            (false, _) => &mut swept.completed,
            (true, false) => &mut swept.retained,
            (true, true) => &mut swept.evicted,
        };
        *count += segment.messages();
    }
    queues.into_values().collect()
}

fn sweep_deleted_queue(connection: &Connection, queue_id: i64, limit: u32) -> Result<u64> {
    let left: Vec<SweptSegment> = connection
        .prepare_cached(
            "SELECT s.partition_id, s.first, s.last, s.body
             FROM queue_partition p JOIN queue_segment s ON s.partition_id = p.id
             WHERE p.queue_id = ?1 LIMIT ?2",
        )?
        .query_map(params![queue_id, limit], SweptSegment::read)?
        .collect::<Result<_>>()?;
    if !left.is_empty() {
        return delete_segments(connection, &left);
    }
    let partitions: Vec<i64> = connection
        .prepare_cached("SELECT id FROM queue_partition WHERE queue_id = ?1 LIMIT ?2")?
        .query_map(params![queue_id, limit], |row| row.get("id"))?
        .collect::<Result<_>>()?;
    for partition in &partitions {
        for statement in [
            "DELETE FROM queue_cursor WHERE partition_id = ?1",
            "DELETE FROM queue_message_flag WHERE partition_id = ?1",
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
        connection.execute("DELETE FROM queue_deleted WHERE queue_id = ?1", [queue_id])?;
    }
    Ok(0)
}

/// Deletes segments and what belongs to their messages. How many messages that were.
fn delete_segments<'a>(
    connection: &Connection,
    segments: impl IntoIterator<Item = &'a SweptSegment>,
) -> Result<u64> {
    let mut messages = 0;
    for segment in segments {
        let partition = segment.partition;
        for transaction_id in segment::given_transactions(&segment.body).map_err(unreadable)? {
            connection
                .prepare_cached(
                    "DELETE FROM queue_transaction WHERE partition_id = ?1 AND hash = ?2",
                )?
                .execute(params![partition, id::hash(&transaction_id)])?;
        }
        connection
            .prepare_cached(
                "DELETE FROM queue_message_flag
                 WHERE partition_id = ?1 AND position >= ?2 AND position <= ?3",
            )?
            .execute([partition, segment.first, segment.last])?;
        connection
            .prepare_cached("DELETE FROM queue_segment WHERE partition_id = ?1 AND last = ?2")?
            .execute([partition, segment.last])?;
        connection
            .prepare_cached(
                "UPDATE queue_partition SET first_position = max(first_position, ?2) WHERE id = ?1",
            )?
            .execute([partition, segment.last + 1])?;
        messages += u64::try_from(segment.messages()).unwrap_or_default();
    }
    Ok(messages)
}
