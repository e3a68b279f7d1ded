//! Groups: forgotten, moved, and told where to begin.

use rusqlite::{Connection, Result, Row, params};

use crate::manage::{GroupScope, Seek};

struct Known {
    id: i64,
    queue_id: i64,
}

/// The groups of this name, in one queue or in all.
fn named(connection: &Connection, scope: &GroupScope) -> Result<Vec<Known>> {
    let read = |row: &Row<'_>| {
        Ok(Known {
            id: row.get(0)?,
            queue_id: row.get(1)?,
        })
    };
    connection
        .prepare_cached(
            "SELECT g.id, q.id
             FROM queue_group g JOIN queue q ON q.id = g.queue_id
             WHERE g.name = ?1 AND (?2 IS NULL OR q.name = ?2) ORDER BY q.id",
        )?
        .query_map(params![scope.group, scope.queue], read)?
        .collect()
}

pub(super) fn delete(connection: &Connection, scope: &GroupScope, with_start: bool) -> Result<u64> {
    let mut deleted = 0;
    for group in named(connection, scope)? {
        deleted +=
            connection.execute("DELETE FROM queue_cursor WHERE group_id = ?1", [group.id])?;
        connection.execute("DELETE FROM queue_mark WHERE group_id = ?1", [group.id])?;
        if with_start {
            connection.execute("DELETE FROM queue_group WHERE id = ?1", [group.id])?;
        } else {
            connection.execute(
                "UPDATE queue_group SET frontier = 0,
                     frontier_end = (SELECT partitions FROM queue WHERE id = ?2)
                 WHERE id = ?1",
                [group.id, group.queue_id],
            )?;
        }
    }
    if scope.queue.is_none() && with_start {
        connection.execute(
            "DELETE FROM queue_subscription WHERE group_name = ?1",
            [&scope.group],
        )?;
    }
    Ok(deleted as u64)
}

/// How many cursors were moved.
pub(super) fn seek(connection: &Connection, scope: &GroupScope, to: Seek, now: i64) -> Result<u64> {
    let at = match to {
        Seek::End => None,
        Seek::At(at) => Some(at),
    };
    let mut sought = 0;
    for group in named(connection, scope)? {
        if scope.partition.is_none() {
            connection.execute(
                "UPDATE queue_group SET begin_at = ?2 WHERE id = ?1",
                params![group.id, at.unwrap_or(now)],
            )?;
        }
        let moved = connection.execute(
            "UPDATE queue_cursor SET ready_at = ?1, lease_id = NULL, leased_to = NULL,
                 position = CASE
                     WHEN ?2 IS NULL THEN (
                         SELECT next_position FROM queue_partition WHERE id = partition_id)
                     ELSE coalesce((
                         SELECT s.last + 1 FROM queue_segment s
                         WHERE s.partition_id = queue_cursor.partition_id AND s.created_at < ?2
                         ORDER BY s.last DESC LIMIT 1), 0) END
             WHERE group_id = ?3 AND partition_id IN (
                 SELECT id FROM queue_partition WHERE queue_id = ?4 AND (?5 IS NULL OR name = ?5))",
            params![now, at, group.id, group.queue_id, scope.partition],
        )?;
        connection.execute(
            "DELETE FROM queue_mark WHERE group_id = ?1 AND NOT is_dead AND partition_id IN (
                 SELECT id FROM queue_partition WHERE queue_id = ?2 AND (?3 IS NULL OR name = ?3))",
            params![group.id, group.queue_id, scope.partition],
        )?;
        sought += moved as u64;
    }
    Ok(sought)
}

pub(super) fn subscribe(connection: &Connection, group: &str, begin_us: i64) -> Result<u64> {
    connection.execute(
        "UPDATE queue_subscription SET begin_at = ?2, mode = 'timestamp' WHERE group_name = ?1",
        params![group, begin_us],
    )?;
    let known = connection.execute(
        "UPDATE queue_group SET begin_at = ?2, mode = 'timestamp' WHERE name = ?1",
        params![group, begin_us],
    )?;
    Ok(known as u64)
}
