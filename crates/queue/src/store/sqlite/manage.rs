//! Queues as things, and what holds for all of them.

use rusqlite::{Connection, OptionalExtension, Result, params};

use super::steps::find_or_make_queue;
use crate::manage::{Configured, Modes, NewOptions};

pub(super) fn configure(connection: &Connection, new: &NewOptions, now: i64) -> Result<Configured> {
    let id = find_or_make_queue(connection, &new.queue, now)?;
    let options = &new.options;
    let (delay_ms, window_ms, namespace, task): (i64, i64, String, String) = connection.query_row(
        "SELECT delay_ms, window_ms, namespace, task FROM queue WHERE id = ?1",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
    )?;
    let is_other_delay = (delay_ms, window_ms) != (options.delay_ms, options.window_ms);
    if is_other_delay {
        // What is held back is looked at again, by the new rules.
        connection.execute(
            "UPDATE queue_cursor SET ready_at = ?2
             WHERE group_id IN (SELECT id FROM queue_group WHERE queue_id = ?1)
                 AND lease_id IS NULL AND ready_at > ?2",
            [id, now],
        )?;
    }
    let given = serde_json::Value::Object(new.given.clone()).to_string();
    connection.query_row(
        "UPDATE queue SET namespace = coalesce(?2, namespace), task = coalesce(?3, task),
             lease_ms = ?4, retry_limit = ?5, retry_delay_ms = ?6, keeps_dead = ?7, priority = ?8,
             delay_ms = ?9, window_ms = ?10, max_size = ?11, age_ms = ?12, evicts = ?13,
             completed_ms = ?14, is_sealed = ?15, options = ?16
         WHERE id = ?1 RETURNING public_id, namespace, task",
        params![
            id,
            new.namespace,
            new.task,
            options.lease_ms,
            options.retry_limit,
            options.retry_delay_ms,
            options.keeps_dead,
            options.priority,
            options.delay_ms,
            options.window_ms,
            options.max_size,
            options.age_ms,
            options.evicts,
            options.completed_ms,
            options.is_sealed,
            given
        ],
        |row| {
            let now_named: (String, String) = (row.get(1)?, row.get(2)?);
            Ok(Configured {
                queue_id: row.get(0)?,
                may_be_ready: is_other_delay || now_named != (namespace, task),
                namespace: now_named.0,
                task: now_named.1,
            })
        },
    )
}

/// What is left of it is swept bit by bit. How many partitions it had.
pub(super) fn delete_queue(connection: &Connection, name: &str) -> Result<Option<i64>> {
    let deleted: Option<(i64, i64)> = connection
        .query_row(
            "DELETE FROM queue WHERE name = ?1 RETURNING id, partitions",
            [name],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((id, partitions)) = deleted else {
        return Ok(None);
    };
    connection.execute("DELETE FROM queue_group WHERE queue_id = ?1", [id])?;
    connection.execute("INSERT INTO queue_gone VALUES (?1)", [id])?;
    Ok(Some(partitions))
}

pub(super) fn modes(connection: &Connection) -> Result<Modes> {
    connection.query_row(
        "SELECT push_paused, pop_paused FROM queue_mode",
        [],
        |row| {
            Ok(Modes {
                push_paused: row.get(0)?,
                pop_paused: row.get(1)?,
            })
        },
    )
}
