//! What is ready, found out without writing: before a claim, and for the recheck of waiting pops.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result, params};
use wakeline_bus::DueWake;
use wakeline_wake::{WaitKey, WaitedKey};

use crate::{
    claim::{PopRequest, Source, Start},
    claiming::duration_from_us,
    topic,
};

/// A queue that waits for so many seconds gains one of priority.
const AGING_SECONDS: f64 = 10.0;

/// Whether a claim can find something.
#[derive(Debug)]
pub(super) enum ReadyCheck {
    /// Only a claim finds out.
    MayBeReady,
    Nothing {
        recheck_after: Option<Duration>,
    },
}

/// Returns `Nothing` only where a claim would find nothing and change nothing.
pub(super) fn check(connection: &Connection, request: &PopRequest, now: i64) -> Result<ReadyCheck> {
    if is_paused(connection)? {
        return Ok(ReadyCheck::Nothing {
            recheck_after: None,
        });
    }
    let ready_at = match &request.source {
        Source::Queue { queue, partition } => {
            match ready_at(connection, queue, partition.as_deref(), &request.group)? {
                ReadyAt::Unknown => {
                    return Ok(ReadyCheck::Nothing {
                        recheck_after: None,
                    });
                }
                ReadyAt::NewGroup => return Ok(ReadyCheck::MayBeReady),
                ReadyAt::At(at) => at,
            }
        }
        Source::Matching { namespace, task } => {
            // Where a group starts must be remembered from its first pop on.
            if request.start != Start::All
                && !is_subscribed(
                    connection,
                    namespace.as_deref(),
                    task.as_deref(),
                    &request.group,
                )?
            {
                return Ok(ReadyCheck::MayBeReady);
            }
            let chosen = choose(
                connection,
                namespace.as_deref(),
                task.as_deref(),
                &request.group,
                now,
            )?;
            chosen.map(|(_, at)| at)
        }
    };
    Ok(match ready_at {
        Some(ready_at) if ready_at <= now => ReadyCheck::MayBeReady,
        later => ReadyCheck::Nothing {
            recheck_after: later.map(|ready_at| duration_from_us(ready_at - now)),
        },
    })
}

pub(super) fn is_paused(connection: &Connection) -> Result<bool> {
    connection
        .prepare_cached("SELECT pop_paused FROM queue_mode")?
        .query_row([], |row| row.get("pop_paused"))
}

fn is_subscribed(
    connection: &Connection,
    namespace: Option<&str>,
    task: Option<&str>,
    group: &str,
) -> Result<bool> {
    connection
        .prepare_cached(
            "SELECT 1 FROM queue_subscription
             WHERE group_name = ?1 AND namespace = ?2 AND task = ?3",
        )?
        .exists(params![
            group,
            namespace.unwrap_or_default(),
            task.unwrap_or_default()
        ])
}

/// When a group can claim from a queue or partition.
enum ReadyAt {
    /// The queue or the partition is not there.
    Unknown,
    /// The group has still to be given cursors, by a claim.
    NewGroup,
    At(Option<i64>),
}

fn ready_at(
    connection: &Connection,
    queue: &str,
    partition: Option<&str>,
    group: &str,
) -> Result<ReadyAt> {
    let queue_id: Option<i64> = connection
        .prepare_cached("SELECT id FROM queue WHERE name = ?1")?
        .query_row([queue], |row| row.get("id"))
        .optional()?;
    let Some(queue_id) = queue_id else {
        return Ok(ReadyAt::Unknown);
    };
    let known: Option<(i64, bool)> = connection
        .prepare_cached(
            "SELECT id, frontier < frontier_end AS is_behind FROM queue_group
             WHERE queue_id = ?1 AND name = ?2",
        )?
        .query_row(params![queue_id, group], |row| {
            Ok((row.get("id")?, row.get("is_behind")?))
        })
        .optional()?;
    let Some((group_id, is_behind)) = known else {
        return Ok(ReadyAt::NewGroup);
    };
    if is_behind {
        return Ok(ReadyAt::NewGroup);
    }
    let Some(partition) = partition else {
        let first = connection
            .prepare_cached(
                "SELECT min(ready_at) AS ready_at FROM queue_cursor
                 WHERE group_id = ?1 AND ready_at IS NOT NULL",
            )?
            .query_row([group_id], |row| row.get("ready_at"))?;
        return Ok(ReadyAt::At(first));
    };
    let cursor: Option<Option<i64>> = connection
        .prepare_cached(
            "SELECT c.ready_at FROM queue_partition p
             JOIN queue_cursor c ON c.partition_id = p.id AND c.group_id = ?3
             WHERE p.queue_id = ?1 AND p.name = ?2",
        )?
        .query_row(params![queue_id, partition, group_id], |row| {
            row.get("ready_at")
        })
        .optional()?;
    Ok(cursor.map_or(ReadyAt::Unknown, ReadyAt::At))
}

/// The queue that a pop by namespace and task claims from, and when it is ready: of those that are
/// ready the one with the highest priority, to which waiting adds; else the first to be.
pub(super) fn choose(
    connection: &Connection,
    namespace: Option<&str>,
    task: Option<&str>,
    group: &str,
    now: i64,
) -> Result<Option<(String, i64)>> {
    let mut statement = connection.prepare_cached(
        "SELECT q.name, q.priority, CASE
             WHEN g.id IS NULL OR g.frontier < g.frontier_end THEN 0
             ELSE (SELECT min(c.ready_at) FROM queue_cursor c
                 WHERE c.group_id = g.id AND c.ready_at IS NOT NULL) END AS ready
         FROM queue q LEFT JOIN queue_group g ON g.queue_id = q.id AND g.name = ?3
         WHERE q.partitions > 0 AND (?1 IS NULL OR q.namespace = ?1) AND (?2 IS NULL OR q.task = ?2)
         ORDER BY q.name",
    )?;
    let mut rows = statement.query(params![namespace, task, group])?;
    let mut best: Option<(f64, String, i64)> = None;
    while let Some(row) = rows.next()? {
        let Some(ready) = row.get::<_, Option<i64>>("ready")? else {
            continue;
        };
        let score = score(row.get("priority")?, ready, now);
        if best.as_ref().is_none_or(|(known, ..)| score > *known) {
            best = Some((score, row.get("name")?, ready));
        }
    }
    Ok(best.map(|(_, name, ready)| (name, ready)))
}

/// What is ready comes before what is not, however long that takes.
fn score(priority: i32, ready: i64, now: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "an order, not a sum")]
    let seconds = (now - ready) as f64 / 1e6;
    if ready > now {
        return seconds - 1e12;
    }
    let waited = if ready == 0 { 0.0 } else { seconds };
    f64::from(priority) + waited / AGING_SECONDS
}

pub(super) fn recheck(
    connection: &Connection,
    waiting: &[WaitedKey],
    now: i64,
) -> Result<Vec<DueWake>> {
    let mut due = Vec::new();
    for at in waiting {
        let group = at.group.name();
        let ready = match topic::source(&at.topic) {
            Some(Source::Queue { queue, partition }) => {
                match ready_at(connection, &queue, partition.as_deref(), group)? {
                    ReadyAt::Unknown => None,
                    ReadyAt::NewGroup => has_partitions(connection, &queue)?.then_some(now),
                    ReadyAt::At(at) => at,
                }
            }
            Some(Source::Matching { namespace, task }) => choose(
                connection,
                namespace.as_deref(),
                task.as_deref(),
                group,
                now,
            )?
            .map(|(_, ready)| ready),
            None => None,
        };
        if let Some(ready) = ready {
            due.push(DueWake {
                key: WaitKey::new(at.topic.clone(), at.group.clone()),
                after: duration_from_us(ready - now),
            });
        }
    }
    Ok(due)
}

fn has_partitions(connection: &Connection, queue: &str) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM queue WHERE name = ?1 AND partitions > 0")?
        .exists([queue])
}
