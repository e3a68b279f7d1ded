//! Pop: looking without writing, claiming, and handing back.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use uuid::Uuid;

use super::{duration, micros};
use crate::{
    claim::{Claimed, PopRequest, Popped},
    message::Message,
};

/// Partitions that one claim makes known to its group at most.
const DISCOVERY: i64 = 500;
/// Caught-up cursors that one claim tidies away at most.
const TIDY: usize = 100;

/// What a look without writing shows.
#[derive(Debug)]
pub(super) enum Seen {
    /// Something may be there: claim to find out.
    Maybe,
    Nothing {
        again: Option<Duration>,
    },
}

/// Only says "nothing" where a claim would find nothing and change nothing.
pub(super) fn look(connection: &Connection, request: &PopRequest, now: i64) -> Result<Seen> {
    let nothing = Seen::Nothing { again: None };
    let queue: Option<(i64, i64)> = connection
        .prepare_cached("SELECT id, partitions FROM queue WHERE name = ?1")?
        .query_row([&request.queue], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((queue_id, partitions)) = queue else {
        return Ok(nothing);
    };
    let one = match &request.partition {
        None => None,
        Some(name) => match partition_id(connection, queue_id, name)? {
            None => return Ok(nothing),
            known => known,
        },
    };
    let group: Option<(i64, i64)> = connection
        .prepare_cached("SELECT id, frontier FROM queue_group WHERE queue_id = ?1 AND name = ?2")?
        .query_row(params![queue_id, request.group], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((group_id, frontier)) = group else {
        return Ok(Seen::Maybe);
    };
    let ready_at: Option<i64> = match one {
        None if frontier < partitions => return Ok(Seen::Maybe),
        None => connection
            .prepare_cached(
                "SELECT min(ready_at) FROM queue_cursor
                 WHERE group_id = ?1 AND ready_at IS NOT NULL",
            )?
            .query_row([group_id], |row| row.get(0))?,
        Some(partition_id) => {
            let cursor: Option<Option<i64>> = connection
                .prepare_cached(
                    "SELECT ready_at FROM queue_cursor WHERE partition_id = ?1 AND group_id = ?2",
                )?
                .query_row([partition_id, group_id], |row| row.get(0))
                .optional()?;
            let Some(ready_at) = cursor else {
                return Ok(Seen::Maybe);
            };
            ready_at
        }
    };
    Ok(match ready_at {
        Some(ready_at) if ready_at <= now => Seen::Maybe,
        later => Seen::Nothing {
            again: later.map(|ready_at| duration(ready_at - now)),
        },
    })
}

fn partition_id(connection: &Connection, queue_id: i64, name: &str) -> Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM queue_partition WHERE queue_id = ?1 AND name = ?2")?
        .query_row(params![queue_id, name], |row| row.get(0))
        .optional()
}

struct Cursor {
    partition_id: i64,
    position: i64,
    dead_to: i64,
}

impl Cursor {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            partition_id: row.get(0)?,
            position: row.get(1)?,
            dead_to: row.get(2)?,
        })
    }
}

pub(super) fn claim(
    connection: &Connection,
    request: &PopRequest,
    lease: Uuid,
    time: Duration,
    now: i64,
) -> Result<Popped> {
    let queue: Option<(i64, i64, Option<i64>)> = connection
        .prepare_cached("SELECT id, partitions, lease_ms FROM queue WHERE name = ?1")?
        .query_row([&request.queue], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((queue_id, partitions, lease_ms)) = queue else {
        return Ok(Popped::Empty { again: None });
    };
    let one = match &request.partition {
        None => None,
        Some(name) => match partition_id(connection, queue_id, name)? {
            None => return Ok(Popped::Empty { again: None }),
            known => known,
        },
    };
    let (group_id, frontier) = find_or_make_group(connection, queue_id, &request.group, now)?;
    let mut more_to_discover = false;
    if let Some(partition_id) = one {
        make_cursor(connection, partition_id, group_id, now)?;
    } else if frontier < partitions {
        discover(connection, queue_id, group_id, frontier, now)?;
        more_to_discover = frontier + DISCOVERY < partitions;
    }
    let time = lease_ms.map_or(micros(time), |ms| ms.saturating_mul(1_000));
    for _ in 0..TIDY {
        let Some(cursor) = ready_cursor(connection, group_id, one, now)? else {
            break;
        };
        let messages = messages(connection, &cursor, group_id, request.batch)?;
        let Some((last, _)) = messages.last() else {
            tidy(connection, &cursor, group_id)?;
            continue;
        };
        let end = last + 1;
        let (partition_id, partition, next): (Uuid, String, i64) = connection
            .prepare_cached(
                "SELECT public_id, name, next_position FROM queue_partition WHERE id = ?1",
            )?
            .query_row([cursor.partition_id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        let remaining = if request.auto_ack { next - end } else { 0 };
        if request.auto_ack {
            connection
                .prepare_cached(
                    "UPDATE queue_cursor
                     SET position = ?3, ready_at = ?4, lease_id = NULL, leased_to = NULL
                     WHERE partition_id = ?1 AND group_id = ?2",
                )?
                .execute(params![
                    cursor.partition_id,
                    group_id,
                    end,
                    (remaining > 0).then_some(now)
                ])?;
        } else {
            connection
                .prepare_cached(
                    "UPDATE queue_cursor SET ready_at = ?3, lease_id = ?4, leased_to = ?5
                     WHERE partition_id = ?1 AND group_id = ?2",
                )?
                .execute(params![
                    cursor.partition_id,
                    group_id,
                    now.saturating_add(time),
                    lease,
                    end
                ])?;
        }
        return Ok(Popped::Claimed(Claimed {
            queue: request.queue.clone(),
            group: request.group.clone(),
            partition,
            partition_id,
            lease: (!request.auto_ack).then_some(lease),
            time: (!request.auto_ack).then(|| duration(time)),
            first: cursor.position,
            end,
            messages: messages.into_iter().map(|(_, message)| message).collect(),
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
        }));
    }
    if more_to_discover {
        return Ok(Popped::Empty {
            again: Some(Duration::ZERO),
        });
    }
    Ok(match look(connection, request, now)? {
        Seen::Maybe => Popped::Empty {
            again: Some(Duration::ZERO),
        },
        Seen::Nothing { again } => Popped::Empty { again },
    })
}

fn find_or_make_group(
    connection: &Connection,
    queue_id: i64,
    name: &str,
    now: i64,
) -> Result<(i64, i64)> {
    connection
        .prepare_cached(
            "INSERT INTO queue_group (queue_id, name, created_at) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![queue_id, name, now])?;
    connection
        .prepare_cached("SELECT id, frontier FROM queue_group WHERE queue_id = ?1 AND name = ?2")?
        .query_row(params![queue_id, name], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
}

/// A cursor begins as ready: whether there is something for it is found out by claiming.
fn make_cursor(
    connection: &Connection,
    partition_id: i64,
    group_id: i64,
    now: i64,
) -> Result<usize> {
    connection
        .prepare_cached(
            "INSERT INTO queue_cursor (partition_id, group_id, ready_at) VALUES (?1, ?2, ?3)
             ON CONFLICT DO NOTHING",
        )?
        .execute([partition_id, group_id, now])
}

fn discover(
    connection: &Connection,
    queue_id: i64,
    group_id: i64,
    frontier: i64,
    now: i64,
) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO queue_cursor (partition_id, group_id, ready_at)
             SELECT id, ?2, ?4 FROM queue_partition
             WHERE queue_id = ?1 AND ordinal > ?3 AND ordinal <= ?3 + ?5
             ON CONFLICT DO NOTHING",
        )?
        .execute([queue_id, group_id, frontier, now, DISCOVERY])?;
    connection
        .prepare_cached(
            "UPDATE queue_group SET frontier = (
                 SELECT min(partitions, ?2 + ?3) FROM queue WHERE queue.id = queue_id)
             WHERE id = ?1",
        )?
        .execute([group_id, frontier, DISCOVERY])?;
    Ok(())
}

fn ready_cursor(
    connection: &Connection,
    group_id: i64,
    one: Option<i64>,
    now: i64,
) -> Result<Option<Cursor>> {
    match one {
        None => connection
            .prepare_cached(
                "SELECT partition_id, position, dead_to FROM queue_cursor
                 WHERE group_id = ?1 AND ready_at <= ?2 ORDER BY ready_at LIMIT 1",
            )?
            .query_row([group_id, now], Cursor::read),
        Some(partition_id) => connection
            .prepare_cached(
                "SELECT partition_id, position, dead_to FROM queue_cursor
                 WHERE partition_id = ?1 AND group_id = ?2 AND ready_at <= ?3",
            )?
            .query_row([partition_id, group_id, now], Cursor::read),
    }
    .optional()
}

fn messages(
    connection: &Connection,
    cursor: &Cursor,
    group_id: i64,
    batch: u32,
) -> Result<Vec<(i64, Message)>> {
    connection
        .prepare_cached(
            "SELECT position, id, transaction_id, trace_id, payload, producer_sub, created_at
             FROM queue_message m
             WHERE partition_id = ?1 AND position >= ?2 AND (position >= ?3 OR NOT EXISTS (
                 SELECT 1 FROM queue_dead_letter d
                 WHERE d.partition_id = m.partition_id AND d.group_id = ?4
                     AND d.position = m.position))
             ORDER BY position LIMIT ?5",
        )?
        .query_map(
            params![
                cursor.partition_id,
                cursor.position,
                cursor.dead_to,
                group_id,
                batch
            ],
            |row| {
                let message = Message {
                    id: row.get(1)?,
                    transaction_id: row.get(2)?,
                    trace_id: row.get(3)?,
                    payload: row.get(4)?,
                    producer_sub: row.get(5)?,
                    created_us: row.get(6)?,
                };
                Ok((row.get(0)?, message))
            },
        )?
        .collect()
}

/// The group has caught up with the partition: not ready until something is pushed.
fn tidy(connection: &Connection, cursor: &Cursor, group_id: i64) -> Result<()> {
    connection
        .prepare_cached(
            "UPDATE queue_cursor SET ready_at = NULL, lease_id = NULL, leased_to = NULL, position =
                 (SELECT max(queue_cursor.position, next_position)
                  FROM queue_partition WHERE id = partition_id)
             WHERE partition_id = ?1 AND group_id = ?2",
        )?
        .execute([cursor.partition_id, group_id])?;
    Ok(())
}

pub(super) fn hand_back(connection: &Connection, claim: &Claimed, now: i64) -> Result<bool> {
    let changed = connection
        .prepare_cached(
            "UPDATE queue_cursor
             SET position = ?4, ready_at = ?6, lease_id = NULL, leased_to = NULL
             WHERE (partition_id, group_id) = (
                 SELECT p.id, g.id FROM queue_partition p
                 JOIN queue_group g ON g.queue_id = p.queue_id
                 WHERE p.public_id = ?1 AND g.name = ?2)
             AND CASE WHEN ?3 IS NULL THEN lease_id IS NULL AND position = ?5
                 ELSE lease_id = ?3 AND position = ?4 END",
        )?
        .execute(params![
            claim.partition_id,
            claim.group,
            claim.lease,
            claim.first,
            claim.end,
            now
        ])?;
    Ok(changed > 0)
}
