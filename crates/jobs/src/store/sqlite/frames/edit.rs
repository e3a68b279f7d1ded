//! Changes of a room's frames.

use uuid::Uuid;

use super::{Result, Session, find};
use crate::{
    frame::Frame,
    room::{AppendOutcome, EditOutcome, FrameVersion, Room, Run},
    store::values_of,
};

pub(super) fn append(
    session: &Session<'_>,
    name: &str,
    editor: Option<Uuid>,
    frames: &[Frame],
    limit: i64,
) -> Result<AppendOutcome> {
    let room = match writable(session, name, editor)? {
        Ok(room) => room,
        Err(EditOutcome::ReadOnly) => return Ok(AppendOutcome::ReadOnly),
        Err(EditOutcome::Locked) => return Ok(AppendOutcome::Locked),
        Err(_) => return Ok(AppendOutcome::NoRoom),
    };
    let count = i64::try_from(frames.len()).unwrap_or(i64::MAX);
    let total = room.stored.saturating_add(count);
    if total > limit {
        return Ok(AppendOutcome::Full(room.stored));
    }
    let sql = "SELECT next_seq FROM jobs_room WHERE id = ?1";
    let from: i64 = session.value(sql, [room.id])?;
    let sql = "INSERT INTO jobs_frame (room_id, seq, body) VALUES (?1, ?2, ?3)";
    for (seq, frame) in (from..).zip(frames) {
        session.execute(sql, (room.id, seq, &frame.bytes()[..]))?;
    }
    let sql = "UPDATE jobs_run SET length = length + ?3
        WHERE room_id = ?1 AND seq = (SELECT max(seq) FROM jobs_run WHERE room_id = ?1)
            AND seq + length = ?2";
    let longer = session.execute(sql, (room.id, from, count))?;
    if longer == 0 && count > 0 {
        let run = Run {
            number: room.stored,
            seq: from,
            length: count,
        };
        insert_run(session, room.id, run)?;
    }
    let sql = "UPDATE jobs_room SET frames = ?2, next_seq = next_seq + ?3, changes = changes + 1
        WHERE id = ?1";
    session.execute(sql, (room.id, total, count))?;
    Ok(AppendOutcome::Done {
        start: room.stored,
        total,
        change: room.changes + 1,
    })
}

/// Copies all frames of a room, as the only run of a new room.
pub(super) fn copy(session: &Session<'_>, from: i64, to: i64) -> Result<()> {
    let sql = "INSERT INTO jobs_frame (room_id, seq, body)
        SELECT ?2, x.number + f.seq - x.seq, f.body FROM jobs_run x
        JOIN jobs_frame f ON f.room_id = x.room_id
            AND f.seq BETWEEN x.seq AND x.seq + x.length - 1
        WHERE x.room_id = ?1";
    let copied = session.execute(sql, (from, to))?;
    if copied == 0 {
        return Ok(());
    }
    let length = i64::try_from(copied).unwrap_or(i64::MAX);
    let run = Run {
        number: 0,
        seq: 0,
        length,
    };
    insert_run(session, to, run)?;
    let sql = "UPDATE jobs_room SET frames = ?2, next_seq = ?2 WHERE id = ?1";
    session.execute(sql, (to, length)).map(drop)
}

pub(super) fn replace(
    session: &Session<'_>,
    name: &str,
    editor: Option<Uuid>,
    number: i64,
    frame: &Frame,
    version: Option<FrameVersion>,
) -> Result<EditOutcome> {
    let (room, run) = match editable(session, name, editor, number)? {
        Ok(found) => found,
        Err(refused) => return Ok(refused),
    };
    let seq = run.seq + number - run.number;
    let sql = "UPDATE jobs_frame SET body = ?3, revision = revision + 1
        WHERE room_id = ?1 AND seq = ?2 AND (?4 IS NULL OR (seq = ?4 AND revision = ?5))";
    let (its_seq, revision) = (version.map(|is| is.seq), version.map(|is| is.revision));
    let body = &frame.bytes()[..];
    let replaced = session.execute(sql, (room.id, seq, body, its_seq, revision))?;
    if replaced == 0 {
        return Ok(EditOutcome::Changed);
    }
    let sql = "UPDATE jobs_room SET changes = changes + 1 WHERE id = ?1";
    session.execute(sql, [room.id])?;
    Ok(EditOutcome::Done {
        total: room.stored,
        change: room.changes + 1,
    })
}

pub(super) fn delete(
    session: &Session<'_>,
    name: &str,
    editor: Option<Uuid>,
    number: i64,
) -> Result<EditOutcome> {
    let (room, run) = match editable(session, name, editor, number)? {
        Ok(found) => found,
        Err(refused) => return Ok(refused),
    };
    let before = number - run.number;
    let sql = "DELETE FROM jobs_frame WHERE room_id = ?1 AND seq = ?2";
    session.execute(sql, (room.id, run.seq + before))?;
    if before == 0 {
        let sql = "DELETE FROM jobs_run WHERE room_id = ?1 AND seq = ?2";
        session.execute(sql, (room.id, run.seq))?;
    } else {
        let sql = "UPDATE jobs_run SET length = ?3 WHERE room_id = ?1 AND seq = ?2";
        session.execute(sql, (room.id, run.seq, before))?;
    }
    let sql = "UPDATE jobs_run SET number = number - 1 WHERE room_id = ?1 AND number > ?2";
    session.execute(sql, (room.id, number))?;
    let behind = Run {
        number,
        seq: run.seq + before + 1,
        length: run.length - before - 1,
    };
    if behind.length > 0 {
        insert_run(session, room.id, behind)?;
    }
    let sql = "UPDATE jobs_room SET frames = frames - 1, changes = changes + 1 WHERE id = ?1";
    session.execute(sql, [room.id])?;
    Ok(EditOutcome::Done {
        total: room.stored - 1,
        change: room.changes + 1,
    })
}

fn writable(
    session: &Session<'_>,
    name: &str,
    editor: Option<Uuid>,
) -> Result<std::result::Result<Room, EditOutcome>> {
    Ok(match find(session, name)? {
        None => Err(EditOutcome::NoRoom),
        Some(room) if room.is_locked_for(editor) => Err(EditOutcome::Locked),
        Some(room) if room.mount.is_some() => Err(EditOutcome::ReadOnly),
        Some(room) => Ok(room),
    })
}

/// The room, and the run of the frame that is edited.
fn editable(
    session: &Session<'_>,
    name: &str,
    editor: Option<Uuid>,
    number: i64,
) -> Result<std::result::Result<(Room, Run), EditOutcome>> {
    let room = match writable(session, name, editor)? {
        Ok(room) => room,
        Err(refused) => return Ok(Err(refused)),
    };
    let sql = "SELECT * FROM jobs_run
        WHERE room_id = $1 AND number <= $2 ORDER BY number DESC LIMIT 1";
    let runs = match (0..room.stored).contains(&number) {
        true => session.rows(sql, values_of![room.id, number])?,
        false => Vec::new(),
    };
    Ok(match runs.first() {
        Some(run) => Ok((room, Run::from_row(run))),
        None => Err(EditOutcome::NoFrame(room.stored)),
    })
}

fn insert_run(session: &Session<'_>, room: i64, run: Run) -> Result<()> {
    let sql = "INSERT INTO jobs_run (room_id, seq, number, length) VALUES (?1, ?2, ?3, ?4)";
    session
        .execute(sql, (room, run.seq, run.number, run.length))
        .map(drop)
}
