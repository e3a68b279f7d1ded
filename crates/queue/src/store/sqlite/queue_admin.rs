//! Administration of queues and groups.

use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Result, params};
use serde_json::{Map, Value};
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use super::{SqliteStore, apply::find_or_make_queue, sweep, unreadable};
use crate::{
    queue_admin::{ConfigureRequest, ConfigureResult, GroupScope, PauseModes, Seek, SweepResult},
    seal::Fingerprint,
    store::{QueueAdmin, wakes},
};

impl QueueAdmin for SqliteStore {
    fn configure(&self, request: ConfigureRequest) -> Write<Option<ConfigureResult>> {
        self.write(
            "configure",
            move |connection, now| configure(connection, &request, now),
            wakes::of_configure,
        )
    }

    fn use_key(&self, keys: Vec<Fingerprint>, may_be_first: bool) -> Write<Option<Fingerprint>> {
        let use_key = move |connection: &Connection, _| {
            let statement = "SELECT key_fingerprint FROM queue_mode";
            let key = connection.query_row(statement, [], |row| row.get("key_fingerprint"))?;
            let key: Option<Fingerprint> = Option::map(key, Fingerprint);
            let is_ours = key.map_or(may_be_first, |key| keys.contains(&key));
            match keys.first() {
                Some(first) if is_ours => {
                    let statement = "UPDATE queue_mode SET key_fingerprint = ?1";
                    connection.execute(statement, [first.0])?;
                    Ok(Some(*first))
                }
                _ => Ok(key),
            }
        };
        self.write("use_key", use_key, wakes::none)
    }

    /// Partitions and messages are left to the sweep.
    fn delete_queue(&self, queue: String) -> Write<Option<i64>> {
        let delete = move |connection: &Connection, _| {
            let deleted: Option<(i64, i64)> = connection
                .query_row(
                    "DELETE FROM queue WHERE name = ?1 RETURNING id, partitions",
                    [queue],
                    |row| Ok((row.get("id")?, row.get("partitions")?)),
                )
                .optional()?;
            let Some((id, partitions)) = deleted else {
                return Ok(None);
            };
            connection.execute("DELETE FROM queue_group WHERE queue_id = ?1", [id])?;
            connection.execute("INSERT INTO queue_deleted VALUES (?1)", [id])?;
            Ok(Some(partitions))
        };
        self.write("delete_queue", delete, wakes::none)
    }

    fn delete_group(&self, scope: GroupScope, with_start: bool) -> Write<u64> {
        self.write(
            "delete_group",
            move |connection, _| delete_group(connection, &scope, with_start),
            wakes::whole_door,
        )
    }

    fn seek(&self, scope: GroupScope, to: Seek) -> Write<u64> {
        self.write(
            "seek",
            move |connection, now| seek(connection, &scope, to, now),
            wakes::whole_door,
        )
    }

    fn subscribe(&self, group: String, begin_us: i64) -> Write<u64> {
        let subscribe = move |connection: &Connection, _| {
            connection.execute(
                "UPDATE queue_subscription SET begin_at = ?2, mode = 'timestamp'
                 WHERE group_name = ?1",
                params![group, begin_us],
            )?;
            let known = connection.execute(
                "UPDATE queue_group SET begin_at = ?2, mode = 'timestamp' WHERE name = ?1",
                params![group, begin_us],
            )?;
            Ok(known as u64)
        };
        self.write("subscribe", subscribe, wakes::none)
    }

    fn modes(&self) -> BoxFuture<'_, Result<PauseModes, Error>> {
        self.read("pauses", |connection, _| modes(connection))
    }

    fn set_push_paused(&self, paused: bool) -> Write<PauseModes> {
        self.pause(
            "UPDATE queue_mode SET push_paused = ?1",
            paused,
            wakes::none,
        )
    }

    fn set_pop_paused(&self, paused: bool) -> Write<PauseModes> {
        let statement = "UPDATE queue_mode SET pop_paused = ?1";
        self.pause(statement, paused, wakes::of_pop_pause)
    }

    fn sweep(&self, limit: u32) -> Write<SweepResult> {
        self.write(
            "sweep",
            move |connection, now| sweep::sweep(connection, limit, now),
            wakes::none,
        )
    }
}

impl SqliteStore {
    fn pause(
        &self,
        statement: &'static str,
        paused: bool,
        wakes: fn(&PauseModes) -> Wakes,
    ) -> Write<PauseModes> {
        let pause = move |connection: &Connection, _| {
            connection.execute(statement, [paused])?;
            modes(connection)
        };
        self.write("pauses", pause, wakes)
    }
}

fn modes(connection: &Connection) -> Result<PauseModes> {
    let statement = "SELECT push_paused, pop_paused FROM queue_mode";
    connection.query_row(statement, [], |row| {
        Ok(PauseModes {
            push_paused: row.get("push_paused")?,
            pop_paused: row.get("pop_paused")?,
        })
    })
}

fn configure(
    connection: &Connection,
    request: &ConfigureRequest,
    now: i64,
) -> Result<Option<ConfigureResult>> {
    let id = find_or_make_queue(connection, &request.queue, now)?;
    if let Some(made_of) = &request.made_of {
        let statement = "SELECT options FROM queue WHERE id = ?1";
        let given: String = connection.query_row(statement, [id], |row| row.get("options"))?;
        let given: Map<String, Value> = serde_json::from_str(&given).map_err(unreadable)?;
        if given != *made_of {
            return Ok(None);
        }
    }
    let options = &request.options;
    let (delay_ms, window_ms, namespace, task): (i64, i64, String, String) = connection.query_row(
        "SELECT delay_ms, window_ms, namespace, task FROM queue WHERE id = ?1",
        [id],
        |row| {
            Ok((
                row.get("delay_ms")?,
                row.get("window_ms")?,
                row.get("namespace")?,
                row.get("task")?,
            ))
        },
    )?;
    let is_other_delay = (delay_ms, window_ms) != (options.delay_ms, options.window_ms);
    if is_other_delay {
        // Claims look again at what is held back, by the new rules.
        connection.execute(
            "UPDATE queue_cursor SET ready_at = ?2
             WHERE group_id IN (SELECT id FROM queue_group WHERE queue_id = ?1)
                 AND lease_id IS NULL AND ready_at > ?2",
            [id, now],
        )?;
    }
    let given = Value::Object(request.given.clone()).to_string();
    let configured = connection.query_row(
        "UPDATE queue SET namespace = coalesce(?2, namespace), task = coalesce(?3, task),
             lease_ms = ?4, retry_limit = ?5, retry_delay_ms = ?6, keeps_dead_letters = ?7,
             priority = ?8, delay_ms = ?9, window_ms = ?10, max_size = ?11, max_age_ms = ?12,
             age_limits_waiting = ?13, completed_retention_ms = ?14, is_sealed = ?15, options = ?16
         WHERE id = ?1 RETURNING public_id, namespace, task",
        params![
            id,
            request.namespace,
            request.task,
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
            given
        ],
        |row| {
            let names: (String, String) = (row.get("namespace")?, row.get("task")?);
            Ok(ConfigureResult {
                queue_id: row.get("public_id")?,
                may_be_ready: is_other_delay || names != (namespace, task),
                namespace: names.0,
                task: names.1,
            })
        },
    )?;
    Ok(Some(configured))
}

/// The groups of this name, in one queue or in all: group id and queue id.
fn named(connection: &Connection, scope: &GroupScope) -> Result<Vec<(i64, i64)>> {
    connection
        .prepare_cached(
            "SELECT g.id, g.queue_id
             FROM queue_group g JOIN queue q ON q.id = g.queue_id
             WHERE g.name = ?1 AND (?2 IS NULL OR q.name = ?2) ORDER BY q.id",
        )?
        .query_map(params![scope.group, scope.queue], |row| {
            Ok((row.get("id")?, row.get("queue_id")?))
        })?
        .collect()
}

fn delete_group(connection: &Connection, scope: &GroupScope, with_start: bool) -> Result<u64> {
    let mut deleted = 0;
    for (group, queue) in named(connection, scope)? {
        deleted += connection.execute("DELETE FROM queue_cursor WHERE group_id = ?1", [group])?;
        connection.execute(
            "DELETE FROM queue_message_flag WHERE group_id = ?1",
            [group],
        )?;
        if with_start {
            connection.execute("DELETE FROM queue_group WHERE id = ?1", [group])?;
        } else {
            connection.execute(
                "UPDATE queue_group SET frontier = 0,
                     frontier_end = (SELECT partitions FROM queue WHERE id = ?2)
                 WHERE id = ?1",
                [group, queue],
            )?;
        }
    }
    if scope.queue.is_none() && with_start {
        let statement = "DELETE FROM queue_subscription WHERE group_name = ?1";
        connection.execute(statement, [&scope.group])?;
    }
    Ok(deleted as u64)
}

fn seek(connection: &Connection, scope: &GroupScope, to: Seek, now: i64) -> Result<u64> {
    let at = match to {
        Seek::End => None,
        Seek::At(at) => Some(at),
    };
    let mut moved = 0;
    for (group, queue) in named(connection, scope)? {
        if scope.partition.is_none() {
            connection.execute(
                "UPDATE queue_group SET begin_at = ?2 WHERE id = ?1",
                params![group, at.unwrap_or(now)],
            )?;
        }
        moved += connection.execute(
            "UPDATE queue_cursor SET ready_at = ?1, lease_id = NULL, leased_to = NULL,
                 deliveries = NULL, position = CASE
                     WHEN ?2 IS NULL THEN (
                         SELECT next_position FROM queue_partition WHERE id = partition_id)
                     ELSE coalesce((
                         SELECT s.last + 1 FROM queue_segment s
                         WHERE s.partition_id = queue_cursor.partition_id AND s.created_at < ?2
                         ORDER BY s.last DESC LIMIT 1), 0) END
             WHERE group_id = ?3 AND partition_id IN (
                 SELECT id FROM queue_partition WHERE queue_id = ?4 AND (?5 IS NULL OR name = ?5))",
            params![now, at, group, queue, scope.partition],
        )?;
        connection.execute(
            "DELETE FROM queue_message_flag
             WHERE group_id = ?1 AND NOT is_dead AND partition_id IN (
                 SELECT id FROM queue_partition WHERE queue_id = ?2 AND (?3 IS NULL OR name = ?3))",
            params![group, queue, scope.partition],
        )?;
    }
    Ok(moved as u64)
}
