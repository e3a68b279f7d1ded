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
    room::{AppendOutcome, EditOutcome, FrameSource, FrameVersion, NewRoom, Room, RoomCreation},
    store::{Commit, Query, Row, StoreFuture, frames::Frames, only, values_of, write},
    wakes,
};

impl Frames for PostgresStore {
    fn create_room(&self, room: NewRoom) -> Write<RoomCreation> {
        let (source, first) = match room.frames {
            FrameSource::Nothing => (None, None),
            FrameSource::Frame(frame) => (None, Some(frame.bytes().clone())),
            FrameSource::Room(name) => (Some(name), None),
        };
        write(
            self,
            Commit::Alone("jobs_room_create"),
            "SELECT outcome, source_bytes, (room).*
             FROM wakeline.jobs_room_create($1, $2, $3, $4, $5)",
            values_of![room.name, room.user, source, first, room.copy_limit],
            wakes::nobody,
            |rows| {
                let row = only(rows)?;
                Ok(match row.get("outcome") {
                    0 => RoomCreation::Found(Room::from_row(row)),
                    1 => RoomCreation::Done(Room::from_row(row)),
                    2 => RoomCreation::NoSource,
                    3 => RoomCreation::SourceMounted,
                    4 => RoomCreation::SourceTooLarge(row.get("source_bytes")),
                    other => return Err(no_such(other)),
                })
            },
        )
    }

    fn append(
        &self,
        name: String,
        editor: Option<Uuid>,
        frames: Vec<Frame>,
        limit: i64,
    ) -> Write<AppendOutcome> {
        let bodies: Vec<Bytes> = frames.iter().map(|frame| frame.bytes().clone()).collect();
        write(
            self,
            Commit::Alone("jobs_append"),
            "SELECT * FROM wakeline.jobs_append($1, $2, $3, $4)",
            values_of![name, editor, bodies, limit],
            wakes::nobody,
            |rows| {
                let row = only(rows)?;
                Ok(match row.get("outcome") {
                    0 => AppendOutcome::Done {
                        start: row.get("start"),
                        total: row.get("total"),
                        change: row.get("change"),
                    },
                    1 => AppendOutcome::NoRoom,
                    2 => AppendOutcome::ReadOnly,
                    3 => AppendOutcome::Full(row.get("start")),
                    5 => AppendOutcome::Locked,
                    other => return Err(no_such(other)),
                })
            },
        )
    }

    fn replace(
        &self,
        name: String,
        editor: Option<Uuid>,
        number: i64,
        frame: Frame,
        version: Option<FrameVersion>,
    ) -> Write<EditOutcome> {
        write(
            self,
            Commit::Alone("jobs_replace"),
            "SELECT * FROM wakeline.jobs_replace($1, $2, $3, $4, $5, $6)",
            values_of![
                name,
                editor,
                number,
                frame.bytes().clone(),
                version.map(|version| version.seq),
                version.map(|version| version.revision),
            ],
            wakes::nobody,
            edited,
        )
    }

    fn delete(&self, name: String, editor: Option<Uuid>, number: i64) -> Write<EditOutcome> {
        write(
            self,
            Commit::Alone("jobs_delete"),
            "SELECT * FROM wakeline.jobs_delete($1, $2, $3)",
            values_of![name, editor, number],
            wakes::nobody,
            edited,
        )
    }

    /// The lengths are known without the bodies, which are read only as far as the limit.
    fn bodies(&self, room: i64, seqs: Vec<i64>, limit: i64) -> StoreFuture<'_, Vec<(i64, Bytes)>> {
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

fn edited(rows: &[Row]) -> Result<EditOutcome, Error> {
    let row = only(rows)?;
    Ok(match row.get("outcome") {
        0 => EditOutcome::Done {
            total: row.get("total"),
            change: row.get("change"),
        },
        1 => EditOutcome::NoRoom,
        2 => EditOutcome::ReadOnly,
        3 => EditOutcome::NoFrame(row.get("total")),
        4 => EditOutcome::Changed,
        5 => EditOutcome::Locked,
        other => return Err(no_such(other)),
    })
}

fn no_such(outcome: i64) -> Error {
    Error::OutcomeUnknown(format!("there is no outcome {outcome}"))
}
