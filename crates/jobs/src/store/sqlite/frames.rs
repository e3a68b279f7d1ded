//! Rooms and frames on SQLite.

mod edit;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Result, SqliteStore, rows};
use crate::{
    frame::Frame,
    room::{
        AppendOutcome, EditOutcome, FrameSource, FrameVersion, Mount, NewRoom, Room, RoomCreation,
    },
    store::{
        StoreFuture,
        frames::{Frames, ROOM},
        values_of,
    },
    wakes,
};

fn find(connection: &Connection, name: &str) -> Result<Option<Room>> {
    let rows = rows(connection, ROOM, values_of![name.to_owned()])?;
    Ok(rows.first().map(Room::from_row))
}

impl Frames for SqliteStore {
    fn create_room(&self, room: NewRoom) -> Write<RoomCreation> {
        self.write("jobs_room_create", wakes::nobody, move |connection, now| {
            create(connection, &room, now)
        })
    }

    fn mount(&self, name: String, mount: Mount) -> Write<Option<Room>> {
        self.write("jobs_mount", wakes::nobody, move |connection, _| {
            connection
                .prepare_cached(
                    "UPDATE jobs_room SET mounted = ?2, mounted_by = ?3 WHERE name = ?1",
                )?
                .execute((&name, mount.frames, mount.user))?;
            find(connection, &name)
        })
    }

    fn unmount(&self, name: String, user: Option<Uuid>) -> Write<Option<Room>> {
        self.write("jobs_unmount", wakes::nobody, move |connection, _| {
            let done = connection
                .prepare_cached(
                    "UPDATE jobs_room SET mounted = NULL, mounted_by = NULL \
                     WHERE name = ?1 AND mounted IS NOT NULL \
                     AND (?2 IS NULL OR mounted_by = ?2)",
                )?
                .execute((&name, user))?;
            if done == 0 {
                return Ok(None);
            }
            find(connection, &name)
        })
    }

    fn append(&self, name: String, frames: Vec<Frame>, limit: i64) -> Write<AppendOutcome> {
        self.write("jobs_append", wakes::nobody, move |connection, _| {
            edit::append(connection, &name, &frames, limit)
        })
    }

    fn replace(
        &self,
        name: String,
        number: i64,
        frame: Frame,
        version: Option<FrameVersion>,
    ) -> Write<EditOutcome> {
        self.write("jobs_replace", wakes::nobody, move |connection, _| {
            edit::replace(connection, &name, number, &frame, version)
        })
    }

    fn delete(&self, name: String, number: i64) -> Write<EditOutcome> {
        self.write("jobs_delete", wakes::nobody, move |connection, _| {
            edit::delete(connection, &name, number)
        })
    }

    fn bodies(&self, room: i64, seqs: Vec<i64>, limit: i64) -> StoreFuture<'_, Vec<(i64, Bytes)>> {
        self.read("jobs_bodies", move |connection, _| {
            let mut statement = connection
                .prepare_cached("SELECT body FROM jobs_frame WHERE room_id = ?1 AND seq = ?2")?;
            let (mut found, mut bytes) = (Vec::new(), 0);
            for seq in seqs {
                let body: Option<Vec<u8>> = statement
                    .query_row([room, seq], |row| row.get("body"))
                    .optional()?;
                let Some(body) = body else { continue };
                bytes += i64::try_from(body.len()).unwrap_or(i64::MAX);
                found.push((seq, body.into()));
                if bytes >= limit {
                    break;
                }
            }
            Ok(found)
        })
    }
}

fn create(connection: &Connection, room: &NewRoom, now: i64) -> Result<RoomCreation> {
    if let Some(found) = find(connection, &room.name)? {
        return Ok(RoomCreation::Found(found));
    }
    let source = match &room.frames {
        FrameSource::Room(name) => match find(connection, name)? {
            None => return Ok(RoomCreation::NoSource),
            Some(source) if source.mount.is_some() => return Ok(RoomCreation::SourceMounted),
            Some(source) => Some(source),
        },
        FrameSource::Nothing | FrameSource::Frame(_) => None,
    };
    if let Some(source) = &source {
        let bytes = connection
            .prepare_cached(
                "SELECT ifnull(sum(length(body)), 0) AS bytes FROM jobs_frame WHERE room_id = ?1",
            )?
            .query_row([source.id], |row| row.get("bytes"))?;
        if bytes > room.copy_limit {
            return Ok(RoomCreation::SourceTooLarge(bytes));
        }
    }
    connection
        .prepare_cached("INSERT INTO jobs_room (name, created_by, created_at) VALUES (?1, ?2, ?3)")?
        .execute((&room.name, room.user, now))?;
    let id = connection.last_insert_rowid();
    if let Some(source) = source {
        edit::copy(connection, source.id, id)?;
    }
    if let FrameSource::Frame(frame) = &room.frames {
        edit::append(
            connection,
            &room.name,
            std::slice::from_ref(frame),
            i64::MAX,
        )?;
    }
    let made = find(connection, &room.name)?;
    let made = made.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(RoomCreation::Done(made))
}
