//! Rooms and frames on PostgreSQL. Their writes are statements by themselves: each locks its room, and
//! several rooms in one transaction would be locked in any order.

use bytes::Bytes;
use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    frame::Frame,
    room::{Appended, Edited, Mount, NewRoom, Room, RoomCreated, Source, Stamp},
    store::{Read, Row, Step, frames::Frames, only, values_of},
    wakes,
};

impl Frames for PostgresStore {
    fn create_room(&self, room: NewRoom) -> Write<RoomCreated> {
        let (source, first) = match room.frames {
            Source::Nothing => (None, None),
            Source::Frame(frame) => (None, Some(frame.bytes().clone())),
            Source::Room(name) => (Some(name), None),
        };
        self.write_alone(
            "jobs_room_create",
            "SELECT outcome, source_bytes, (room).*
             FROM wakeline.jobs_room_create($1, $2, $3, $4, $5)",
            values_of![room.name, room.user, source, first, room.copy_limit],
            wakes::nobody,
            |rows| {
                let row = only(rows)?;
                Ok(match row.get("outcome") {
                    0 => RoomCreated::Found(Room::from_row(row)),
                    1 => RoomCreated::Done(Room::from_row(row)),
                    2 => RoomCreated::NoSource,
                    3 => RoomCreated::SourceMounted,
                    4 => RoomCreated::SourceTooLarge(row.get("source_bytes")),
                    other => return Err(no_such(other)),
                })
            },
        )
    }

    fn mount(&self, name: String, mount: Mount) -> Write<Option<Room>> {
        self.write_alone(
            "jobs_mount",
            "UPDATE wakeline.jobs_room SET mounted = $2, mounted_by = $3 WHERE name = $1
             RETURNING *",
            values_of![name, mount.frames, mount.user],
            wakes::nobody,
            |rows| Ok(rows.first().map(Room::from_row)),
        )
    }

    fn unmount(&self, name: String, user: Option<Uuid>) -> Write<Option<Room>> {
        self.write_alone(
            "jobs_unmount",
            "UPDATE wakeline.jobs_room SET mounted = NULL, mounted_by = NULL
             WHERE name = $1 AND mounted IS NOT NULL AND ($2 IS NULL OR mounted_by = $2)
             RETURNING *",
            values_of![name, user],
            wakes::nobody,
            |rows| Ok(rows.first().map(Room::from_row)),
        )
    }

    fn append(&self, name: String, frames: Vec<Frame>, limit: i64) -> Write<Appended> {
        let bodies: Vec<Bytes> = frames.iter().map(|frame| frame.bytes().clone()).collect();
        self.write_alone(
            "jobs_append",
            "SELECT * FROM wakeline.jobs_append($1, $2, $3)",
            values_of![name, bodies, limit],
            wakes::nobody,
            |rows| {
                let row = only(rows)?;
                Ok(match row.get("outcome") {
                    0 => Appended::Done {
                        start: row.get("start"),
                        total: row.get("total"),
                    },
                    1 => Appended::NoRoom,
                    2 => Appended::ReadOnly,
                    3 => Appended::Full(row.get("start")),
                    other => return Err(no_such(other)),
                })
            },
        )
    }

    fn replace(
        &self,
        name: String,
        number: i64,
        frame: Frame,
        stamp: Option<Stamp>,
    ) -> Write<Edited> {
        self.write_alone(
            "jobs_replace",
            "SELECT * FROM wakeline.jobs_replace($1, $2, $3, $4, $5)",
            values_of![
                name,
                number,
                frame.bytes().clone(),
                stamp.map(|stamp| stamp.seq),
                stamp.map(|stamp| stamp.revision),
            ],
            wakes::nobody,
            edited,
        )
    }

    fn delete(&self, name: String, number: i64) -> Write<Edited> {
        self.write_alone(
            "jobs_delete",
            "SELECT * FROM wakeline.jobs_delete($1, $2)",
            values_of![name, number],
            wakes::nobody,
            edited,
        )
    }

    /// Lengths are known without the bodies, which are read only as far as they are wanted.
    fn bodies(&self, room: i64, seqs: Vec<i64>, limit: i64) -> Step<'_, Vec<(i64, Bytes)>> {
        let statement = "SELECT f.seq, f.body FROM (
                SELECT w.seq, w.ordinal,
                    sum(octet_length(g.body)) OVER (ORDER BY w.ordinal)
                        - octet_length(g.body) AS before
                FROM unnest($2) WITH ORDINALITY AS w (seq, ordinal)
                JOIN wakeline.jobs_frame g ON g.room_id = $1 AND g.seq = w.seq
            ) AS s
            JOIN wakeline.jobs_frame f ON f.room_id = $1 AND f.seq = s.seq
            WHERE s.before < $3 ORDER BY s.ordinal";
        let rows = self.rows("jobs_bodies", statement, values_of![room, seqs, limit]);
        let read = |row: &Row| (row.get("seq"), row.get("body"));
        async move { Ok(rows.await?.iter().map(read).collect()) }.boxed()
    }
}

fn edited(rows: &[Row]) -> Result<Edited, Error> {
    let row = only(rows)?;
    Ok(match row.get("outcome") {
        0 => Edited::Done(row.get("total")),
        1 => Edited::NoRoom,
        2 => Edited::ReadOnly,
        3 => Edited::NoFrame(row.get("total")),
        4 => Edited::Changed,
        other => return Err(no_such(other)),
    })
}

fn no_such(outcome: i64) -> Error {
    Error::OutcomeUnknown(format!("there is no outcome {outcome}"))
}
