//! Changes of a room's frames.

use rusqlite::Connection;

use super::{Result, find, rows};
use crate::{
    frame::Frame,
    room::{AppendOutcome, EditOutcome, FrameVersion, Room, Run},
    store::values_of,
};

pub(super) fn append(
    connection: &Connection,
    name: &str,
    frames: &[Frame],
    limit: i64,
) -> Result<AppendOutcome> {
    let room = match writable(connection, name)? {
        Ok(room) => room,
        Err(EditOutcome::ReadOnly) => return Ok(AppendOutcome::ReadOnly),
        Err(_) => return Ok(AppendOutcome::NoRoom),
    };
    let count = i64::try_from(frames.len()).unwrap_or(i64::MAX);
    let total = room.stored.saturating_add(count);
    if total > limit {
        return Ok(AppendOutcome::Full(room.stored));
    }
    let from: i64 = connection
        .prepare_cached("SELECT next_seq FROM jobs_room WHERE id = ?1")?
        .query_row([room.id], |row| row.get("next_seq"))?;
    let mut insert = connection
        .prepare_cached("INSERT INTO jobs_frame (room_id, seq, body) VALUES (?1, ?2, ?3)")?;
    for (seq, frame) in (from..).zip(frames) {
        insert.execute((room.id, seq, &frame.bytes()[..]))?;
    }
    let longer = connection
        .prepare_cached(
            "UPDATE jobs_run SET length = length + ?3 \
             WHERE room_id = ?1 AND seq = (SELECT max(seq) FROM jobs_run WHERE room_id = ?1) \
             AND seq + length = ?2",
        )?
        .execute((room.id, from, count))?;
    if longer == 0 && count > 0 {
        let run = Run {
            number: room.stored,
            seq: from,
            length: count,
        };
        insert_run(connection, room.id, run)?;
    }
    connection
        .prepare_cached("UPDATE jobs_room SET frames = ?2, next_seq = next_seq + ?3 WHERE id = ?1")?
        .execute((room.id, total, count))?;
    Ok(AppendOutcome::Done {
        start: room.stored,
        total,
    })
}

/// Copies all frames of a room, as the only run of a new room.
pub(super) fn copy(connection: &Connection, from: i64, to: i64) -> Result<()> {
    let copied = connection
        .prepare_cached(
            "INSERT INTO jobs_frame (room_id, seq, body) \
             SELECT ?2, x.number + f.seq - x.seq, f.body FROM jobs_run x \
             JOIN jobs_frame f ON f.room_id = x.room_id \
             AND f.seq BETWEEN x.seq AND x.seq + x.length - 1 \
             WHERE x.room_id = ?1",
        )?
        .execute((from, to))?;
    if copied == 0 {
        return Ok(());
    }
    let length = i64::try_from(copied).unwrap_or(i64::MAX);
    let run = Run {
        number: 0,
        seq: 0,
        length,
    };
    insert_run(connection, to, run)?;
    connection
        .prepare_cached("UPDATE jobs_room SET frames = ?2, next_seq = ?2 WHERE id = ?1")?
        .execute((to, length))?;
    Ok(())
}

pub(super) fn replace(
    connection: &Connection,
    name: &str,
    number: i64,
    frame: &Frame,
    version: Option<FrameVersion>,
) -> Result<EditOutcome> {
    let room = match writable(connection, name)? {
        Ok(room) => room,
        Err(refused) => return Ok(refused),
    };
    let Some(run) = run_of(connection, &room, number)? else {
        return Ok(EditOutcome::NoFrame(room.stored));
    };
    let seq = run.seq + number - run.number;
    let done = connection
        .prepare_cached(
            "UPDATE jobs_frame SET body = ?3, revision = revision + 1 \
             WHERE room_id = ?1 AND seq = ?2 \
             AND (?4 IS NULL OR (seq = ?4 AND revision = ?5))",
        )?
        .execute((
            room.id,
            seq,
            &frame.bytes()[..],
            version.map(|version| version.seq),
            version.map(|version| version.revision),
        ))?;
    if done == 0 {
        return Ok(EditOutcome::Changed);
    }
    Ok(EditOutcome::Done(room.stored))
}

pub(super) fn delete(connection: &Connection, name: &str, number: i64) -> Result<EditOutcome> {
    let room = match writable(connection, name)? {
        Ok(room) => room,
        Err(refused) => return Ok(refused),
    };
    let Some(run) = run_of(connection, &room, number)? else {
        return Ok(EditOutcome::NoFrame(room.stored));
    };
    let before = number - run.number;
    connection
        .prepare_cached("DELETE FROM jobs_frame WHERE room_id = ?1 AND seq = ?2")?
        .execute((room.id, run.seq + before))?;
    if before == 0 {
        connection
            .prepare_cached("DELETE FROM jobs_run WHERE room_id = ?1 AND seq = ?2")?
            .execute((room.id, run.seq))?;
    } else {
        connection
            .prepare_cached("UPDATE jobs_run SET length = ?3 WHERE room_id = ?1 AND seq = ?2")?
            .execute((room.id, run.seq, before))?;
    }
    connection
        .prepare_cached(
            "UPDATE jobs_run SET number = number - 1 WHERE room_id = ?1 AND number > ?2",
        )?
        .execute((room.id, number))?;
    let behind = Run {
        number,
        seq: run.seq + before + 1,
        length: run.length - before - 1,
    };
    if behind.length > 0 {
        insert_run(connection, room.id, behind)?;
    }
    connection
        .prepare_cached("UPDATE jobs_room SET frames = frames - 1 WHERE id = ?1")?
        .execute([room.id])?;
    Ok(EditOutcome::Done(room.stored - 1))
}

fn writable(connection: &Connection, name: &str) -> Result<std::result::Result<Room, EditOutcome>> {
    Ok(match find(connection, name)? {
        None => Err(EditOutcome::NoRoom),
        Some(room) if room.mount.is_some() => Err(EditOutcome::ReadOnly),
        Some(room) => Ok(room),
    })
}

fn run_of(connection: &Connection, room: &Room, number: i64) -> Result<Option<Run>> {
    if !(0..room.stored).contains(&number) {
        return Ok(None);
    }
    let statement = "SELECT number, seq, length FROM jobs_run
        WHERE room_id = $1 AND number <= $2 ORDER BY number DESC LIMIT 1";
    let rows = rows(connection, statement, values_of![room.id, number])?;
    Ok(rows.first().map(Run::from_row))
}

fn insert_run(connection: &Connection, room: i64, run: Run) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO jobs_run (room_id, seq, number, length) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute((room, run.seq, run.number, run.length))?;
    Ok(())
}
