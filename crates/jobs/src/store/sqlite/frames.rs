//! Rooms and frames on SQLite.

mod edit;

use bytes::Bytes;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Result, Session, SqliteStore};
use crate::{
    frame::Frame,
    room::{AppendOutcome, EditOutcome, FrameSource, FrameVersion, NewRoom, Room, RoomCreation},
    store::{
        StoreFuture,
        frames::{Frames, ROOM},
        values_of,
    },
    wakes,
};

fn find(session: &Session<'_>, name: &str) -> Result<Option<Room>> {
    let rows = session.rows(ROOM, values_of![name.to_owned()])?;
    Ok(rows.first().map(Room::from_row))
}

impl Frames for SqliteStore {
    fn create_room(&self, room: NewRoom) -> Write<RoomCreation> {
        self.write("jobs_room_create", wakes::nobody, move |session| {
            create(session, &room)
        })
    }

    fn append(
        &self,
        name: String,
        editor: Option<Uuid>,
        frames: Vec<Frame>,
        limit: i64,
    ) -> Write<AppendOutcome> {
        self.write("jobs_append", wakes::nobody, move |session| {
            edit::append(session, &name, editor, &frames, limit)
        })
    }

    fn replace(
        &self,
        name: String,
        editor: Option<Uuid>,
        number: i64,
        frame: Frame,
        version: Option<FrameVersion>,
    ) -> Write<EditOutcome> {
        self.write("jobs_replace", wakes::nobody, move |session| {
            edit::replace(session, &name, editor, number, &frame, version)
        })
    }

    fn delete(&self, name: String, editor: Option<Uuid>, number: i64) -> Write<EditOutcome> {
        self.write("jobs_delete", wakes::nobody, move |session| {
            edit::delete(session, &name, editor, number)
        })
    }

    fn bodies(&self, room: i64, seqs: Vec<i64>, limit: i64) -> StoreFuture<'_, Vec<(i64, Bytes)>> {
        self.read("jobs_bodies", move |session| {
            let sql = "SELECT body FROM jobs_frame WHERE room_id = ?1 AND seq = ?2";
            let (mut found, mut bytes) = (Vec::new(), 0);
            for seq in seqs {
                let Some(body) = session.optional::<Vec<u8>>(sql, [room, seq])? else {
                    continue;
                };
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

fn create(session: &Session<'_>, room: &NewRoom) -> Result<RoomCreation> {
    if let Some(found) = find(session, &room.name)? {
        return Ok(RoomCreation::Found(found));
    }
    let source = match &room.frames {
        FrameSource::Room(name) => match find(session, name)? {
            None => return Ok(RoomCreation::NoSource),
            Some(source) if source.mount.is_some() => return Ok(RoomCreation::SourceMounted),
            Some(source) => Some(source),
        },
        FrameSource::Nothing | FrameSource::Frame(_) => None,
    };
    if let Some(source) = &source {
        let sql = "SELECT ifnull(sum(length(body)), 0) FROM jobs_frame WHERE room_id = ?1";
        let bytes = session.value(sql, [source.id])?;
        if bytes > room.copy_limit {
            return Ok(RoomCreation::SourceTooLarge(bytes));
        }
    }
    let sql = "INSERT INTO jobs_room (name, created_by, created_at) VALUES (?1, ?2, ?3)
        RETURNING id";
    let id = session.value(sql, (&room.name, room.user, session.now))?;
    match (&room.frames, source) {
        (FrameSource::Frame(frame), _) => {
            let frames = std::slice::from_ref(frame);
            edit::append(session, &room.name, None, frames, i64::MAX)?;
        }
        (_, Some(source)) => edit::copy(session, source.id, id)?,
        (_, None) => {}
    }
    let created = find(session, &room.name)?;
    let created = created.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(RoomCreation::Done(created))
}
