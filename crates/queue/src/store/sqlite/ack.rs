//! Ack: fenced by the lease, and never backwards.

use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use uuid::Uuid;

use crate::ack::{Ack, Acked, Outcome, Status};

struct At {
    partition_id: i64,
    group_id: i64,
    queue: String,
    partition: String,
    next_position: i64,
    retry_limit: i64,
    retry_delay_ms: i64,
    position: i64,
    ready_at: Option<i64>,
    lease_id: Option<Uuid>,
    leased_to: Option<i64>,
    dead_to: i64,
}

impl At {
    fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            partition_id: row.get(0)?,
            group_id: row.get(1)?,
            queue: row.get(2)?,
            partition: row.get(3)?,
            next_position: row.get(4)?,
            retry_limit: row.get(5)?,
            retry_delay_ms: row.get(6)?,
            position: row.get(7)?,
            ready_at: row.get(8)?,
            lease_id: row.get(9)?,
            leased_to: row.get(10)?,
            dead_to: row.get(11)?,
        })
    }
}

pub(super) fn ack(connection: &Connection, ack: &Ack, now: i64) -> Result<Acked> {
    let unchanged = |outcome| {
        Ok(Acked {
            outcome,
            ready: None,
        })
    };
    let at = connection
        .prepare_cached(
            "SELECT p.id, g.id, q.name, p.name, p.next_position, q.retry_limit, q.retry_delay_ms,
                 c.position, c.ready_at, c.lease_id, c.leased_to, c.dead_to
             FROM queue_partition p
             JOIN queue q ON q.id = p.queue_id
             JOIN queue_group g ON g.queue_id = q.id AND g.name = ?2
             JOIN queue_cursor c ON c.partition_id = p.id AND c.group_id = g.id
             WHERE p.public_id = ?1",
        )?
        .query_row(params![ack.partition_id, ack.group], At::read)
        .optional()?;
    let Some(mut at) = at else {
        let outcome = if ack.lease.is_some() {
            Outcome::LeaseLost
        } else {
            Outcome::Unknown
        };
        return unchanged(outcome);
    };
    let is_leased = at.lease_id.is_some() && at.ready_at.is_some_and(|until| until > now);
    if ack.lease.is_some() && !(is_leased && ack.lease == at.lease_id) {
        return unchanged(Outcome::LeaseLost);
    }
    let position: Option<i64> = connection
        .prepare_cached(
            "SELECT position FROM queue_message WHERE partition_id = ?1 AND transaction_id = ?2",
        )?
        .query_row(params![at.partition_id, ack.transaction_id], |row| {
            row.get(0)
        })
        .optional()?;
    let Some(position) = position else {
        return unchanged(Outcome::Unknown);
    };
    if position < at.position {
        let is_done = ack.status == Status::Completed;
        return unchanged(if is_done {
            Outcome::AlreadyDone
        } else {
            Outcome::Passed
        });
    }

    let (dead, failures) = count_failure(connection, ack, &at, position)?;
    if dead {
        connection
            .prepare_cached(
                "INSERT INTO queue_dead_letter VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                at.partition_id,
                at.group_id,
                position,
                failures,
                ack.error,
                now
            ])?;
        at.dead_to = at.dead_to.max(position + 1);
    }
    // A completed message completes those before it. A dead one is passed only when it is the
    // next, because those before it have not been answered for.
    if ack.status == Status::Completed || (dead && position == at.position) {
        at.position = behind_dead(connection, &at, position + 1)?;
        connection
            .prepare_cached(
                "DELETE FROM queue_failure
                 WHERE partition_id = ?1 AND group_id = ?2 AND position < ?3",
            )?
            .execute([at.partition_id, at.group_id, at.position])?;
    }
    let comes_again = matches!(ack.status, Status::Failed | Status::Retry) && !dead;
    let is_over = comes_again || at.leased_to.is_none_or(|end| at.position >= end) || !is_leased;
    let mut is_ready = false;
    if is_over {
        is_ready = at.next_position > at.position;
        let delay = if ack.status == Status::Failed && !dead {
            at.retry_delay_ms
        } else {
            0
        };
        at.ready_at = is_ready.then_some(now.saturating_add(delay.saturating_mul(1_000)));
        at.lease_id = None;
        at.leased_to = None;
    }
    connection
        .prepare_cached(
            "UPDATE queue_cursor
             SET position = ?3, ready_at = ?4, lease_id = ?5, leased_to = ?6, dead_to = ?7
             WHERE partition_id = ?1 AND group_id = ?2",
        )?
        .execute(params![
            at.partition_id,
            at.group_id,
            at.position,
            at.ready_at,
            at.lease_id,
            at.leased_to,
            at.dead_to
        ])?;
    Ok(Acked {
        outcome: Outcome::Done {
            lease_released: is_over && is_leased,
            dead,
        },
        ready: is_ready.then_some((at.queue, at.partition)),
    })
}

/// The dead ones that follow are answered for: a lease must not last for their sake.
fn behind_dead(connection: &Connection, at: &At, mut position: i64) -> Result<i64> {
    let mut dead = connection.prepare_cached(
        "SELECT 1 FROM queue_dead_letter
         WHERE partition_id = ?1 AND group_id = ?2 AND position = ?3",
    )?;
    while position < at.dead_to && dead.exists([at.partition_id, at.group_id, position])? {
        position += 1;
    }
    Ok(position)
}

/// Whether the message is dead now, and how often it has failed.
fn count_failure(
    connection: &Connection,
    ack: &Ack,
    at: &At,
    position: i64,
) -> Result<(bool, i64)> {
    match ack.status {
        Status::Completed | Status::Retry => Ok((false, 0)),
        Status::DeadLetter => {
            let failures: Option<i64> = connection
                .prepare_cached(
                    "SELECT failures FROM queue_failure
                     WHERE partition_id = ?1 AND group_id = ?2 AND position = ?3",
                )?
                .query_row([at.partition_id, at.group_id, position], |row| row.get(0))
                .optional()?;
            Ok((true, failures.unwrap_or_default()))
        }
        Status::Failed => {
            let failures: i64 = connection
                .prepare_cached(
                    "INSERT INTO queue_failure VALUES (?1, ?2, ?3, 1, ?4)
                     ON CONFLICT DO UPDATE SET failures = failures + 1, error = excluded.error
                     RETURNING failures",
                )?
                .query_row(
                    params![at.partition_id, at.group_id, position, ack.error],
                    |row| row.get(0),
                )?;
            Ok((failures > at.retry_limit, failures))
        }
    }
}
