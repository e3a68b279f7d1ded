//! Removing what is too old, and what is left of deleted queues; a slice at a time.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::unreadable;
use crate::{
    id,
    manage::{Swept, SweptQueue},
    segment,
};

/// A segment that goes.
struct Victim {
    partition: i64,
    first: i64,
    last: i64,
    body: String,
}

impl Victim {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            partition: row.get(0)?,
            first: row.get(1)?,
            last: row.get(2)?,
            body: row.get(3)?,
        })
    }

    fn messages(&self) -> i64 {
        self.last - self.first + 1
    }
}

/// Whose it is, whether it is too old and not just consumed, and which rule made it too old.
type Why = (String, bool, bool);

pub(super) fn sweep(connection: &Connection, limit: u32, now: i64) -> Result<Swept> {
    let aged: Vec<(Victim, Why)> = connection
        .prepare_cached(
            "SELECT s.partition_id, s.first, s.last, s.body, q.name,
                 coalesce(s.created_at < ?1 - q.age_ms * 1000, 0), q.evicts
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
            let why = (row.get(4)?, row.get(5)?, row.get(6)?);
            Ok((Victim::read(row)?, why))
        })?
        .collect::<Result<_>>()?;
    let mut swept = Swept {
        messages: forget(connection, aged.iter().map(|(victim, _)| victim))?,
        is_more: aged.len() >= limit as usize,
        queues: by_queue(&aged),
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

fn by_queue(aged: &[(Victim, Why)]) -> Vec<SweptQueue> {
    let mut queues: BTreeMap<&str, SweptQueue> = BTreeMap::new();
    for (victim, (queue, is_aged, evicts)) in aged {
        let swept = queues.entry(queue).or_insert_with(|| SweptQueue {
            queue: queue.clone(),
            ..SweptQueue::default()
        });
        let count = match (is_aged, evicts) {
            (false, _) => &mut swept.completed,
            (true, false) => &mut swept.retained,
            (true, true) => &mut swept.evicted,
        };
        *count += victim.messages();
    }
    queues.into_values().collect()
}

fn sweep_gone(connection: &Connection, queue_id: i64, limit: u32) -> Result<u64> {
    let left: Vec<Victim> = connection
        .prepare_cached(
            "SELECT s.partition_id, s.first, s.last, s.body
             FROM queue_partition p JOIN queue_segment s ON s.partition_id = p.id
             WHERE p.queue_id = ?1 LIMIT ?2",
        )?
        .query_map(params![queue_id, limit], Victim::read)?
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
fn forget<'a>(
    connection: &Connection,
    victims: impl IntoIterator<Item = &'a Victim>,
) -> Result<u64> {
    let mut messages = 0;
    for victim in victims {
        let partition = victim.partition;
        for transaction_id in segment::given_transactions(&victim.body).map_err(unreadable)? {
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
            .execute([partition, victim.first, victim.last])?;
        connection
            .prepare_cached("DELETE FROM queue_segment WHERE partition_id = ?1 AND last = ?2")?
            .execute([partition, victim.last])?;
        connection
            .prepare_cached(
                "UPDATE queue_partition SET first_position = max(first_position, ?2) WHERE id = ?1",
            )?
            .execute([partition, victim.last + 1])?;
        messages += u64::try_from(victim.messages()).unwrap_or_default();
    }
    Ok(messages)
}
