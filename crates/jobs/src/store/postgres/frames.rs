//! Rooms and frames. Their writes are statements by themselves: a room is taken by its row, and
//! several rooms in one transaction would be taken in any order.

use bytes::Bytes;
use futures_util::FutureExt;
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, only};
use crate::{
    frame::Frame,
    page::{Page, Paged},
    room::{Appended, Edited, Mount, NewRoom, Room, RoomCreated, Run, Runs, Source, Stamp},
    store::{
        Step,
        frames::{Frames, Stored},
    },
    topic, wakes,
};

/// Read by [`room_of`].
macro_rules! room {
    () => {
        "r.id, r.name, r.frames, r.mounted, r.mounted_by, r.created_at"
    };
}

fn room_of(row: &Row) -> Result<Room, Error> {
    let mounted: Option<i64> = get(row, "mounted")?;
    let by: Option<Uuid> = get(row, "mounted_by")?;
    Ok(Room {
        id: get(row, "id")?,
        name: get(row, "name")?,
        stored: get(row, "frames")?,
        mount: mounted.zip(by).map(|(frames, user)| Mount { frames, user }),
        created_at: get(row, "created_at")?,
    })
}

fn get<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, column: &str) -> Result<T, Error> {
    row.try_get(column)
        .map_err(|error| Error::OutcomeUnknown(error.to_string()))
}

fn no_such(outcome: i16) -> Error {
    Error::OutcomeUnknown(format!("there is no outcome {outcome}"))
}

impl Frames for PostgresStore {
    fn create_room(&self, room: NewRoom) -> Write<RoomCreated> {
        let postgres = self.postgres.clone();
        let run = async move {
            let (source, first) = match &room.frames {
                Source::Nothing => (None, None),
                Source::Frame(frame) => (None, Some(&frame.bytes()[..])),
                Source::Room(name) => (Some(name), None),
            };
            let rows = postgres
                .query(
                    "jobs_room_create",
                    "SELECT c.outcome, c.bytes, (c.room).id, (c.room).name, (c.room).frames, \
                     (c.room).mounted, (c.room).mounted_by, (c.room).created_at \
                     FROM wakeline.jobs_room_create($1, $2, $3, $4, $5) AS c",
                    &[
                        (&room.name, Type::TEXT),
                        (&room.user, Type::UUID),
                        (&source, Type::TEXT),
                        (&first, Type::BYTEA),
                        (&room.copy_limit, Type::INT8),
                    ],
                )
                .await?;
            let row = only(&rows)?;
            Ok(match get(row, "outcome")? {
                0 => RoomCreated::Found(room_of(row)?),
                1 => RoomCreated::Done(room_of(row)?),
                2 => RoomCreated::NoSource,
                3 => RoomCreated::SourceMounted,
                4 => RoomCreated::SourceTooLarge(get(row, "bytes")?),
                other => return Err(no_such(other)),
            })
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn room(&self, name: String) -> Step<'_, Option<Room>> {
        async move {
            let statement = concat!(
                "SELECT ",
                room!(),
                " FROM wakeline.jobs_room r WHERE r.name = $1"
            );
            let rows = self
                .ask("jobs_room", statement, &[(&name, Type::TEXT)])
                .await?;
            rows.first().map(room_of).transpose()
        }
        .boxed()
    }

    fn rooms(&self, page: Page) -> Step<'_, Paged<Room>> {
        async move {
            let rows = self
                .ask(
                    "jobs_rooms",
                    concat!(
                        "SELECT ",
                        room!(),
                        " FROM wakeline.jobs_room r ORDER BY r.id DESC LIMIT $1 OFFSET $2"
                    ),
                    &[(&page.limit, Type::INT8), (&page.offset, Type::INT8)],
                )
                .await?;
            let items = rows.iter().map(room_of).collect::<Result<_, _>>()?;
            let counted = "SELECT count(*) AS total FROM wakeline.jobs_room";
            let rows = self.ask("jobs_rooms", counted, &[]).await?;
            let total = get(only(&rows)?, "total")?;
            Ok(Paged { items, total })
        }
        .boxed()
    }

    fn mount(&self, name: String, mount: Mount) -> Write<Option<Room>> {
        let postgres = self.postgres.clone();
        let run = async move {
            let rows = postgres
                .query(
                    "jobs_mount",
                    concat!(
                        "UPDATE wakeline.jobs_room r SET mounted = $2, mounted_by = $3 \
                         WHERE r.name = $1 RETURNING ",
                        room!()
                    ),
                    &[
                        (&name, Type::TEXT),
                        (&mount.frames, Type::INT8),
                        (&mount.user, Type::UUID),
                    ],
                )
                .await?;
            rows.first().map(room_of).transpose()
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn unmount(&self, name: String, user: Option<Uuid>) -> Write<Option<Room>> {
        let postgres = self.postgres.clone();
        let run = async move {
            let rows = postgres
                .query(
                    "jobs_unmount",
                    concat!(
                        "UPDATE wakeline.jobs_room r SET mounted = NULL, mounted_by = NULL \
                         WHERE r.name = $1 AND r.mounted IS NOT NULL \
                         AND ($2 IS NULL OR r.mounted_by = $2) RETURNING ",
                        room!()
                    ),
                    &[(&name, Type::TEXT), (&user, Type::UUID)],
                )
                .await?;
            rows.first().map(room_of).transpose()
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn append(&self, name: String, frames: Vec<Frame>, limit: i64) -> Write<Appended> {
        let postgres = self.postgres.clone();
        let run = async move {
            let bodies: Vec<&[u8]> = frames.iter().map(|frame| &frame.bytes()[..]).collect();
            let rows = postgres
                .query(
                    "jobs_append",
                    "SELECT outcome, start, total FROM wakeline.jobs_append($1, $2, $3)",
                    &[
                        (&name, Type::TEXT),
                        (&bodies, Type::BYTEA_ARRAY),
                        (&limit, Type::INT8),
                    ],
                )
                .await?;
            let row = only(&rows)?;
            Ok(match get(row, "outcome")? {
                0 => Appended::Done {
                    start: get(row, "start")?,
                    total: get(row, "total")?,
                },
                1 => Appended::NoRoom,
                2 => Appended::ReadOnly,
                3 => Appended::Full(get(row, "start")?),
                other => return Err(no_such(other)),
            })
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn replace(
        &self,
        name: String,
        number: i64,
        frame: Frame,
        stamp: Option<Stamp>,
    ) -> Write<Edited> {
        let postgres = self.postgres.clone();
        let run = async move {
            let rows = postgres
                .query(
                    "jobs_replace",
                    "SELECT outcome, total FROM wakeline.jobs_replace($1, $2, $3, $4, $5)",
                    &[
                        (&name, Type::TEXT),
                        (&number, Type::INT8),
                        (&&frame.bytes()[..], Type::BYTEA),
                        (&stamp.map(|stamp| stamp.seq), Type::INT8),
                        (&stamp.map(|stamp| stamp.revision), Type::INT8),
                    ],
                )
                .await?;
            edited(only(&rows)?)
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn delete(&self, name: String, number: i64) -> Write<Edited> {
        let postgres = self.postgres.clone();
        let run = async move {
            let rows = postgres
                .query(
                    "jobs_delete",
                    "SELECT outcome, total FROM wakeline.jobs_delete($1, $2)",
                    &[(&name, Type::TEXT), (&number, Type::INT8)],
                )
                .await?;
            edited(only(&rows)?)
        };
        Write::new(topic::DOOR, run, wakes::nobody)
    }

    fn frame(&self, name: String, number: i64) -> Step<'_, Option<(Room, Option<Stored>)>> {
        async move {
            let rows = self
                .ask(
                    "jobs_frame",
                    concat!(
                        "SELECT ",
                        room!(),
                        ", f.seq, f.revision, f.body FROM wakeline.jobs_room r \
                         LEFT JOIN wakeline.jobs_frame f ON f.room_id = r.id AND f.seq = CASE \
                         WHEN $2 BETWEEN 0 AND r.frames - 1 THEN ( \
                             SELECT x.seq + $2 - x.number FROM wakeline.jobs_run x \
                             WHERE x.room_id = r.id AND x.number <= $2 \
                             ORDER BY x.number DESC LIMIT 1) END \
                         WHERE r.name = $1"
                    ),
                    &[(&name, Type::TEXT), (&number, Type::INT8)],
                )
                .await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let stored = match get(row, "seq")? {
                None => None,
                Some(seq) => {
                    let revision = get(row, "revision")?;
                    Some(Stored {
                        stamp: Stamp { seq, revision },
                        frame: Frame::kept(body(row)?),
                    })
                }
            };
            Ok(Some((room_of(row)?, stored)))
        }
        .boxed()
    }

    fn locate(&self, name: String, start: i64, stop: i64) -> Step<'_, Option<(Room, Runs)>> {
        async move {
            let rows = self
                .ask(
                    "jobs_locate",
                    concat!(
                        "SELECT ",
                        room!(),
                        ", x.number, x.seq, x.length FROM wakeline.jobs_room r \
                         LEFT JOIN wakeline.jobs_run x ON x.room_id = r.id \
                         AND x.number < $3 AND x.number + x.length > $2 \
                         WHERE r.name = $1 ORDER BY x.number"
                    ),
                    &[
                        (&name, Type::TEXT),
                        (&start, Type::INT8),
                        (&stop, Type::INT8),
                    ],
                )
                .await?;
            let Some(first) = rows.first() else {
                return Ok(None);
            };
            let mut runs = Vec::new();
            for row in &rows {
                // A room without runs is one row without a run.
                if let Some(number) = get(row, "number")? {
                    let (seq, length) = (get(row, "seq")?, get(row, "length")?);
                    runs.push(Run {
                        number,
                        seq,
                        length,
                    });
                }
            }
            Ok(Some((room_of(first)?, Runs(runs))))
        }
        .boxed()
    }

    fn bodies(&self, room: i64, seqs: Vec<i64>, limit: i64) -> Step<'_, Vec<(i64, Bytes)>> {
        async move {
            // Lengths are known without the bodies, which are read only as far as they are wanted.
            let rows = self
                .ask(
                    "jobs_bodies",
                    "SELECT f.seq, f.body FROM ( \
                         SELECT w.seq, w.place, \
                         sum(octet_length(g.body)) OVER (ORDER BY w.place) \
                             - octet_length(g.body) AS before \
                         FROM unnest($2) WITH ORDINALITY AS w (seq, place) \
                         JOIN wakeline.jobs_frame g ON g.room_id = $1 AND g.seq = w.seq) AS s \
                     JOIN wakeline.jobs_frame f ON f.room_id = $1 AND f.seq = s.seq \
                     WHERE s.before < $3 ORDER BY s.place",
                    &[
                        (&room, Type::INT8),
                        (&seqs, Type::INT8_ARRAY),
                        (&limit, Type::INT8),
                    ],
                )
                .await?;
            let found = rows.iter().map(|row| Ok((get(row, "seq")?, body(row)?)));
            found.collect()
        }
        .boxed()
    }
}

fn body(row: &Row) -> Result<Bytes, Error> {
    get::<&[u8]>(row, "body").map(Bytes::copy_from_slice)
}

fn edited(row: &Row) -> Result<Edited, Error> {
    let total = || get(row, "total");
    Ok(match get(row, "outcome")? {
        0 => Edited::Done(total()?),
        1 => Edited::NoRoom,
        2 => Edited::ReadOnly,
        3 => Edited::NoFrame(total()?),
        4 => Edited::Changed,
        other => return Err(no_such(other)),
    })
}
