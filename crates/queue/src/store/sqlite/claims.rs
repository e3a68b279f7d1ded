//! Claims: made, released, and leases extended.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use uuid::Uuid;

use super::{apply, ready_check, unreadable};
use crate::{
    claim::{Claim, PopOutcome, PopRequest, Source, Start},
    claiming::{self, Claimant, ClaimedQueue, duration_from_us, duration_to_us},
    deliveries::Deliveries,
    segment::Segment,
    takeable::Candidate,
};

/// Partitions in which one claim gives its group cursors at most.
const DISCOVERY: i64 = 500;

struct QueueRow {
    id: i64,
    namespace: String,
    task: String,
    lease_us: Option<i64>,
    delay_us: i64,
    window_us: i64,
    max_age_us: Option<i64>,
}

struct GroupRow {
    id: i64,
    frontier: i64,
    frontier_end: i64,
    begin_at: Option<i64>,
}

pub(super) fn claim(
    connection: &Connection,
    request: &PopRequest,
    lease: Uuid,
    time: Duration,
    now: i64,
) -> Result<PopOutcome> {
    let empty = |recheck_after: Option<i64>| {
        Ok(PopOutcome::Empty {
            recheck_after: recheck_after.map(duration_from_us),
        })
    };
    if ready_check::is_paused(connection)? {
        return empty(None);
    }
    let (name, partition, start) = match &request.source {
        Source::Queue { queue, partition } => (queue.clone(), partition.as_deref(), request.start),
        Source::Matching { namespace, task } => {
            let (namespace, task) = (namespace.as_deref(), task.as_deref());
            let start = subscribe(connection, namespace, task, request, now)?;
            match ready_check::choose(connection, namespace, task, &request.group, now)? {
                Some((name, ready)) if ready <= now => (name, None, start),
                later => return empty(later.map(|(_, ready)| ready - now)),
            }
        }
    };
    let Some(queue) = queue(connection, &name)? else {
        return empty(None);
    };
    let group = find_or_make_group(connection, queue.id, &request.group, start, now)?;
    let is_behind = discover(connection, queue.id, &group, now)?;
    let candidates = candidates(connection, &queue, group.id, partition, request, now)?;
    let claimant = Claimant {
        batch: request.batch,
        partitions: request.partitions,
        auto_ack: request.auto_ack,
        lease,
        time,
        own_time: request.lease_time,
    };
    let mut shares = claiming::share(&[claimant], candidates, now).map_err(unreadable)?;
    for update in &mut shares.updates {
        if update.is_at_end {
            // One writer: what this transaction sees is the end.
            update.cursor.ready_us = None;
        }
        apply::move_cursor(connection, update.key, &update.cursor, update.consumed)?;
    }
    let claimed_queue = ClaimedQueue {
        name,
        namespace: queue.namespace,
        task: queue.task,
        group: group.id,
    };
    let parts = shares.parts.pop().unwrap_or_default();
    let lease_time = shares.leases.pop().flatten();
    let claimed = claiming::claim(&claimed_queue, &request.group, &claimant, lease_time, parts);
    if let Some(claimed) = claimed {
        return Ok(PopOutcome::Claimed(claimed));
    }
    if is_behind || shares.recheck_after_us == Some(0) {
        return empty(Some(0));
    }
    let due: Option<i64> = connection
        .prepare_cached(
            "SELECT min(c.ready_at) AS ready_at FROM queue_cursor c
             WHERE c.group_id = ?1 AND c.ready_at IS NOT NULL AND (?2 IS NULL OR c.partition_id = (
                 SELECT p.id FROM queue_partition p WHERE p.queue_id = ?3 AND p.name = ?2))",
        )?
        .query_row(params![group.id, partition, queue.id], |row| {
            row.get("ready_at")
        })?;
    empty(due.map(|due| (due - now).max(0)))
}

fn queue(connection: &Connection, name: &str) -> Result<Option<QueueRow>> {
    let read = |row: &Row<'_>| {
        let us = |ms: Option<i64>| ms.map(|ms| ms.saturating_mul(1_000));
        Ok(QueueRow {
            id: row.get("id")?,
            namespace: row.get("namespace")?,
            task: row.get("task")?,
            lease_us: us(row.get("lease_ms")?),
            delay_us: us(row.get("delay_ms")?).unwrap_or_default(),
            window_us: us(row.get("window_ms")?).unwrap_or_default(),
            max_age_us: us(row.get("max_age_ms")?),
        })
    };
    connection
        .prepare_cached(
            "SELECT id, namespace, task, lease_ms, delay_ms, window_ms, max_age_ms
             FROM queue WHERE name = ?1",
        )?
        .query_row([name], read)
        .optional()
}

fn begin(start: Start, now: i64) -> Option<i64> {
    match start {
        Start::All => None,
        Start::New => Some(now),
        Start::At(at) => Some(at),
    }
}

/// Remembers where a group that pops by namespace or task starts, and returns that.
fn subscribe(
    connection: &Connection,
    namespace: Option<&str>,
    task: Option<&str>,
    request: &PopRequest,
    now: i64,
) -> Result<Start> {
    let key = (
        namespace.unwrap_or_default(),
        task.unwrap_or_default(),
        &request.group,
    );
    connection
        .prepare_cached(
            "INSERT INTO queue_subscription (namespace, task, group_name, begin_at, mode)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            key.0,
            key.1,
            key.2,
            begin(request.start, now),
            request.start.mode()
        ])?;
    let begin: Option<i64> = connection
        .prepare_cached(
            "SELECT begin_at FROM queue_subscription
             WHERE namespace = ?1 AND task = ?2 AND group_name = ?3",
        )?
        .query_row(params![key.0, key.1, key.2], |row| row.get("begin_at"))?;
    Ok(begin.map_or(Start::All, Start::At))
}

fn find_or_make_group(
    connection: &Connection,
    queue_id: i64,
    name: &str,
    start: Start,
    now: i64,
) -> Result<GroupRow> {
    let read = |row: &Row<'_>| {
        Ok(GroupRow {
            id: row.get("id")?,
            frontier: row.get("frontier")?,
            frontier_end: row.get("frontier_end")?,
            begin_at: row.get("begin_at")?,
        })
    };
    let known = connection
        .prepare_cached(
            "SELECT id, frontier, frontier_end, begin_at FROM queue_group
             WHERE queue_id = ?1 AND name = ?2",
        )?
        .query_row(params![queue_id, name], read)
        .optional()?;
    if let Some(group) = known {
        return Ok(group);
    }
    connection
        .prepare_cached(
            "INSERT INTO queue_group (queue_id, name, mode, begin_at, frontier_end, created_at)
             SELECT id, ?2, ?3, ?4, partitions, ?5 FROM queue WHERE id = ?1
             RETURNING id, frontier, frontier_end, begin_at",
        )?
        .query_row(
            params![queue_id, name, start.mode(), begin(start, now), now],
            read,
        )
}

/// Gives the group cursors in some of the partitions where it has none yet. Whether there are more.
fn discover(connection: &Connection, queue_id: i64, group: &GroupRow, now: i64) -> Result<bool> {
    if group.frontier >= group.frontier_end {
        return Ok(false);
    }
    let end = (group.frontier + DISCOVERY).min(group.frontier_end);
    connection
        .prepare_cached(
            "INSERT INTO queue_cursor (partition_id, group_id, position, ready_at)
             SELECT p.id, ?1, CASE WHEN ?2 IS NULL THEN 0 ELSE coalesce((
                 SELECT s.last + 1 FROM queue_segment s
                 WHERE s.partition_id = p.id AND s.created_at < ?2
                 ORDER BY s.last DESC LIMIT 1), 0) END, ?3
             FROM queue_partition p
             WHERE p.queue_id = ?4 AND p.ordinal > ?5 AND p.ordinal <= ?6
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            group.id,
            group.begin_at,
            now,
            queue_id,
            group.frontier,
            end
        ])?;
    connection
        .prepare_cached("UPDATE queue_group SET frontier = ?2 WHERE id = ?1")?
        .execute([group.id, end])?;
    Ok(end < group.frontier_end)
}

fn candidates(
    connection: &Connection,
    queue: &QueueRow,
    group: i64,
    partition: Option<&str>,
    request: &PopRequest,
    now: i64,
) -> Result<Vec<Candidate>> {
    let read_limit = i64::from(request.batch);
    let mut deletions_ends = Vec::new();
    let read = |row: &Row<'_>| {
        deletions_ends.push(row.get::<_, i64>("deletions_end")?);
        Ok(Candidate {
            partition: row.get("id")?,
            group,
            name: row.get("name")?,
            position: row.get("position")?,
            flags_end: row.get("flags_end")?,
            leased_to: row.get("leased_to")?,
            deliveries: Deliveries::of_text(row.get::<_, Option<String>>("deliveries")?.as_deref()),
            first: row.get("first_position")?,
            next: row.get("next_position")?,
            last_us: row.get("last_at")?,
            lease_us: queue.lease_us,
            delay_us: queue.delay_us,
            window_us: queue.window_us,
            max_age_us: queue.max_age_us,
            skipped: std::collections::HashSet::new(),
            read_limit,
            segments: Vec::new(),
        })
    };
    let mut found: Vec<Candidate> = match partition {
        None => connection
            .prepare_cached(
                "SELECT p.id, p.name, c.position, c.flags_end, c.leased_to, c.deliveries,
                     p.first_position, p.next_position, p.last_at, p.deletions_end
                 FROM queue_cursor c JOIN queue_partition p ON p.id = c.partition_id
                 WHERE c.group_id = ?1 AND c.ready_at <= ?2 ORDER BY c.ready_at LIMIT ?3",
            )?
            .query_map(params![group, now, request.partitions.max(1)], read)?
            .collect::<Result<_>>()?,
        Some(name) => connection
            .prepare_cached(
                "SELECT p.id, p.name, c.position, c.flags_end, c.leased_to, c.deliveries,
                     p.first_position, p.next_position, p.last_at, p.deletions_end
                 FROM queue_partition p
                 JOIN queue_cursor c ON c.partition_id = p.id AND c.group_id = ?1
                 WHERE p.queue_id = ?3 AND p.name = ?4 AND c.ready_at <= ?2",
            )?
            .query_map(params![group, now, queue.id, name], read)?
            .collect::<Result<_>>()?,
    };
    for (candidate, deletions_end) in found.iter_mut().zip(deletions_ends) {
        read_segments(connection, candidate, deletions_end)?;
    }
    Ok(found)
}

fn read_segments(
    connection: &Connection,
    candidate: &mut Candidate,
    deletions_end: i64,
) -> Result<()> {
    let from = candidate.position.max(candidate.first);
    let end = from.saturating_add(candidate.read_limit);
    let partition = candidate.partition;
    let read = |row: &Row<'_>| {
        Ok(Segment {
            partition,
            first: row.get("first")?,
            last: row.get("last")?,
            created_us: row.get("created_at")?,
            only_group: row.get("only_group")?,
            body: row.get("body")?,
        })
    };
    let mut statement = connection.prepare_cached(
        "SELECT first, last, created_at, only_group, body FROM queue_segment
         WHERE partition_id = ?1 AND last >= ?2 ORDER BY last",
    )?;
    for segment in statement.query_map([partition, from], read)? {
        let segment = segment?;
        if segment.first >= end {
            break;
        }
        candidate.segments.push(segment);
    }
    if candidate.flags_end.max(deletions_end) > from {
        let mut dead = connection.prepare_cached(
            "SELECT position FROM queue_message_flag
             WHERE partition_id = ?1 AND group_id IN (0, ?2) AND position >= ?3 AND position < ?4
                 AND is_dead",
        )?;
        let dead = dead.query_map([partition, candidate.group, from, end], |row| {
            row.get("position")
        })?;
        candidate.skipped = dead.collect::<Result<_>>()?;
    }
    Ok(())
}

pub(super) fn release_claim(connection: &Connection, claim: &Claim, now: i64) -> Result<Vec<i64>> {
    let mut released = Vec::new();
    for part in &claim.parts {
        let changed = connection
            .prepare_cached(
                "UPDATE queue_cursor
                 SET position = ?3, ready_at = ?5, lease_id = NULL, leased_to = NULL
                 WHERE partition_id = ?1 AND group_id = ?2 AND CASE
                     WHEN ?6 IS NULL THEN lease_id IS NULL AND position = ?4
                     ELSE lease_id = ?6 AND position = ?3 END",
            )?
            .execute(params![
                part.number,
                claim.group_number,
                part.first,
                part.end,
                now,
                claim.lease
            ])?;
        if changed > 0 {
            released.push(part.number);
        }
    }
    Ok(released)
}

pub(super) fn extend(
    connection: &Connection,
    lease: Uuid,
    time: Duration,
    now: i64,
) -> Result<Option<(usize, i64)>> {
    let until = now.saturating_add(duration_to_us(time));
    let ends: Vec<i64> = connection
        .prepare_cached(
            "UPDATE queue_cursor SET ready_at = max(ready_at, ?2)
             WHERE lease_id = ?1 AND ready_at > ?3 RETURNING ready_at",
        )?
        .query_map(params![lease, until, now], |row| row.get("ready_at"))?
        .collect::<Result<_>>()?;
    Ok(ends.iter().max().map(|until| (ends.len(), *until)))
}
