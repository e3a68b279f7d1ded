//! Rooms and frames.

mod edit;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};
use uuid::Uuid;
use wakeline_bus::Write;

use super::SqliteStore;
use crate::{
    frame::Frame,
    page::{Page, Paged},
    room::{Appended, Edited, Mount, NewRoom, Room, RoomCreated, Run, Runs, Source, Stamp},
    store::{
        Step,
        frames::{Frames, Stored},
    },
    wakes,
};

/// Read by [`room_of`].
macro_rules! room {
    () => {
        "r.id, r.name, r.frames, r.mounted, r.mounted_by, r.created_at"
    };
}

fn room_of(row: &Row<'_>) -> rusqlite::Result<Room> {
    let mounted: Option<i64> = row.get(3)?;
    let by: Option<Uuid> = row.get(4)?;
    Ok(Room {
        id: row.get(0)?,
        name: row.get(1)?,
        stored: row.get(2)?,
        mount: mounted.zip(by).map(|(frames, user)| Mount { frames, user }),
        created_at: row.get(5)?,
    })
}

fn find(connection: &Connection, name: &str) -> rusqlite::Result<Option<Room>> {
    connection
        .prepare_cached(concat!(
            "SELECT ",
            room!(),
            " FROM jobs_room r WHERE r.name = ?1"
        ))?
        .query_row([name], room_of)
        .optional()
}

impl Frames for SqliteStore {
    fn create_room(&self, room: NewRoom) -> Write<RoomCreated> {
        self.write("jobs_room_create", wakes::nobody, move |connection, now| {
            create(connection, &room, now)
        })
    }

    fn room(&self, name: String) -> Step<'_, Option<Room>> {
        self.read("jobs_room", move |connection, _| find(connection, &name))
    }

    fn rooms(&self, page: Page) -> Step<'_, Paged<Room>> {
        self.read("jobs_rooms", move |connection, _| {
            let items = connection
                .prepare_cached(concat!(
                    "SELECT ",
                    room!(),
                    " FROM jobs_room r ORDER BY r.id DESC LIMIT ?1 OFFSET ?2"
                ))?
                .query_map([page.limit, page.offset], room_of)?
                .collect::<Result<_, _>>()?;
            let total = connection
                .prepare_cached("SELECT count(*) FROM jobs_room")?
                .query_row([], |row| row.get(0))?;
            Ok(Paged { items, total })
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

    fn append(&self, name: String, frames: Vec<Frame>, limit: i64) -> Write<Appended> {
        self.write("jobs_append", wakes::nobody, move |connection, _| {
            edit::append(connection, &name, &frames, limit)
        })
    }

    fn replace(
        &self,
        name: String,
        number: i64,
        frame: Frame,
        stamp: Option<Stamp>,
    ) -> Write<Edited> {
        self.write("jobs_replace", wakes::nobody, move |connection, _| {
            edit::replace(connection, &name, number, &frame, stamp)
        })
    }

    fn delete(&self, name: String, number: i64) -> Write<Edited> {
        self.write("jobs_delete", wakes::nobody, move |connection, _| {
            edit::delete(connection, &name, number)
        })
    }

    fn frame(&self, name: String, number: i64) -> Step<'_, Option<(Room, Option<Stored>)>> {
        // One statement sees one state.
        self.read("jobs_frame", move |connection, _| {
            connection
                .prepare_cached(concat!(
                    "SELECT ",
                    room!(),
                    ", f.seq, f.revision, f.body FROM jobs_room r \
                     LEFT JOIN jobs_frame f ON f.room_id = r.id AND f.seq = CASE \
                     WHEN ?2 BETWEEN 0 AND r.frames - 1 THEN ( \
                         SELECT x.seq + ?2 - x.number FROM jobs_run x \
                         WHERE x.room_id = r.id AND x.number <= ?2 \
                         ORDER BY x.number DESC LIMIT 1) END \
                     WHERE r.name = ?1"
                ))?
                .query_row((&name, number), |row| {
                    let Some(seq) = row.get(6)? else {
                        return Ok((room_of(row)?, None));
                    };
                    let revision = row.get(7)?;
                    let stored = Stored {
                        stamp: Stamp { seq, revision },
                        frame: Frame::kept(row.get::<_, Vec<u8>>(8)?.into()),
                    };
                    Ok((room_of(row)?, Some(stored)))
                })
                .optional()
        })
    }

    fn locate(&self, name: String, start: i64, stop: i64) -> Step<'_, Option<(Room, Runs)>> {
        self.read("jobs_locate", move |connection, _| {
            let mut statement = connection.prepare_cached(concat!(
                "SELECT ",
                room!(),
                ", x.number, x.seq, x.length FROM jobs_room r \
                 LEFT JOIN jobs_run x ON x.room_id = r.id \
                 AND x.number < ?3 AND x.number + x.length > ?2 \
                 WHERE r.name = ?1 ORDER BY x.number"
            ))?;
            let mut rows = statement.query((&name, start, stop))?;
            let mut found = None;
            while let Some(row) = rows.next()? {
                let (_, Runs(runs)) = match &mut found {
                    Some(found) => found,
                    none => none.insert((room_of(row)?, Runs::default())),
                };
                if let Some(number) = row.get(6)? {
                    let (seq, length) = (row.get(7)?, row.get(8)?);
                    runs.push(Run {
                        number,
                        seq,
                        length,
                    });
                }
            }
            Ok(found)
        })
    }

    fn bodies(&self, room: i64, seqs: Vec<i64>, limit: i64) -> Step<'_, Vec<(i64, Bytes)>> {
        self.read("jobs_bodies", move |connection, _| {
            let mut statement = connection
                .prepare_cached("SELECT body FROM jobs_frame WHERE room_id = ?1 AND seq = ?2")?;
            let (mut found, mut bytes) = (Vec::new(), 0);
            for seq in seqs {
                let body: Option<Vec<u8>> = statement
                    .query_row([room, seq], |row| row.get(0))
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

fn create(connection: &Connection, room: &NewRoom, now: i64) -> rusqlite::Result<RoomCreated> {
    if let Some(found) = find(connection, &room.name)? {
        return Ok(RoomCreated::Found(found));
    }
    let source = match &room.frames {
        Source::Room(name) => match find(connection, name)? {
            None => return Ok(RoomCreated::NoSource),
            Some(source) if source.mount.is_some() => return Ok(RoomCreated::SourceMounted),
            Some(source) => Some(source),
        },
        Source::Nothing | Source::Frame(_) => None,
    };
    if let Some(source) = &source {
        let bytes = connection
            .prepare_cached(
                "SELECT ifnull(sum(length(body)), 0) FROM jobs_frame WHERE room_id = ?1",
            )?
            .query_row([source.id], |row| row.get(0))?;
        if bytes > room.copy_limit {
            return Ok(RoomCreated::SourceTooLarge(bytes));
        }
    }
    connection
        .prepare_cached("INSERT INTO jobs_room (name, created_by, created_at) VALUES (?1, ?2, ?3)")?
        .execute((&room.name, room.user, now))?;
    let id = connection.last_insert_rowid();
    if let Some(source) = source {
        edit::copy(connection, source.id, id)?;
    }
    if let Source::Frame(frame) = &room.frames {
        edit::append(
            connection,
            &room.name,
            std::slice::from_ref(frame),
            i64::MAX,
        )?;
    }
    let made = find(connection, &room.name)?;
    let made = made.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(RoomCreated::Done(made))
}
