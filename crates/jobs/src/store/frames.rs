//! The durable steps of rooms and their frames.
//!
//! A frame keeps the number under which it was stored (its `seq`) for ever; its number in the room
//! is found through the room's runs. So a delete moves no frame: it costs a row, and one small row
//! more for every gap behind it.

use bytes::Bytes;
use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Chat, Commit, Progress, Query, Row, StoreFuture, page_of, values_of, write};
use crate::{
    frame::Frame,
    page::{ListPage, Page},
    room::{
        AppendOutcome, EditOutcome, FrameVersion, Mount, NewRoom, Room, RoomCreation, Run, Runs,
    },
    wakes,
};

pub(super) const ROOM: &str = "SELECT * FROM wakeline.jobs_room WHERE name = $1";

const ROOMS: &str = "SELECT r.*, (SELECT count(*) FROM wakeline.jobs_room) AS total
    FROM (SELECT 1) one LEFT JOIN (
        SELECT * FROM wakeline.jobs_room ORDER BY id DESC LIMIT $1 OFFSET $2
    ) r ON true ORDER BY r.id DESC";

/// One statement sees one state.
const FRAME: &str = "SELECT r.*, f.seq, f.revision, f.body FROM wakeline.jobs_room r
    LEFT JOIN wakeline.jobs_frame f ON f.room_id = r.id AND f.seq = CASE
        WHEN $2 BETWEEN 0 AND r.frames - 1 THEN (
            SELECT x.seq + $2 - x.number FROM wakeline.jobs_run x
            WHERE x.room_id = r.id AND x.number <= $2 ORDER BY x.number DESC LIMIT 1
        ) END
    WHERE r.name = $1";

const RUNS: &str = "SELECT r.*, x.number, x.seq, x.length FROM wakeline.jobs_room r
    LEFT JOIN wakeline.jobs_run x ON x.room_id = r.id
        AND x.number < $3 AND x.number + x.length > $2
    WHERE r.name = $1 ORDER BY x.number";

const MOUNT: &str = "UPDATE wakeline.jobs_room
    SET mounted = $2, mounted_by = $3, changes = changes + 1
    WHERE name = $1 AND (locked_by IS NULL OR $4 IS NULL OR locked_by = $4)
    RETURNING *";

const UNMOUNT: &str = "UPDATE wakeline.jobs_room
    SET mounted = NULL, mounted_by = NULL, changes = changes + 1
    WHERE name = $1 AND mounted IS NOT NULL AND ($2 IS NULL OR mounted_by = $2)
        AND (locked_by IS NULL OR $2 IS NULL OR locked_by = $2)
    RETURNING *";

/// A room that is locked already stays the first user's.
const LOCK: &str = "UPDATE wakeline.jobs_room
    SET locked_by = CASE WHEN $4 THEN coalesce(locked_by, $3) END
    WHERE name = $1 AND (locked_by IS NULL OR $2 IS NULL OR locked_by = $2)
    RETURNING *";

/// A frame and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFrame {
    pub version: FrameVersion,
    pub frame: Frame,
}

/// Each method is one atomic step. The writes lock the room, so that they are done one after the
/// other. A dropped future of a read has done nothing; a [`Write`] that was committed runs to its end.
pub trait Frames: Chat + Progress + Query + std::fmt::Debug {
    /// Creates a room with its frames, unless it exists. A repeat finds it.
    fn create_room(&self, room: NewRoom) -> Write<RoomCreation>;

    /// Mounts the room. `None`: there is no such room, or it is locked for this editor (as below,
    /// `None` is a superuser). A repeat changes nothing more.
    fn mount(&self, name: String, editor: Option<Uuid>, mount: Mount) -> Write<Option<Room>> {
        let parameters = values_of![name, mount.frames, mount.user, editor];
        let commit = Commit::Alone("jobs_mount");
        write(self, commit, MOUNT, parameters, wakes::nobody, |rows| {
            Ok(rows.first().map(Room::from_row))
        })
    }

    /// Removes the mount; with a user, only theirs. Returns the room if it had one, which a repeat
    /// does not find.
    fn unmount(&self, name: String, user: Option<Uuid>) -> Write<Option<Room>> {
        let (parameters, commit) = (values_of![name, user], Commit::Alone("jobs_unmount"));
        write(self, commit, UNMOUNT, parameters, wakes::nobody, |rows| {
            Ok(rows.first().map(Room::from_row))
        })
    }

    /// Locks the room for all but this user and superusers, or unlocks it. `None`: there is no such
    /// room, or another user has locked it. A repeat changes nothing more.
    fn lock(
        &self,
        name: String,
        editor: Option<Uuid>,
        user: Uuid,
        is_locked: bool,
    ) -> Write<Option<Room>> {
        let parameters = values_of![name, editor, user, is_locked];
        let commit = Commit::Alone("jobs_room_lock");
        write(self, commit, LOCK, parameters, wakes::nobody, |rows| {
            Ok(rows.first().map(Room::from_row))
        })
    }

    /// Stores all frames or none, after the existing ones; at most `limit` in the room. A repeat
    /// stores them again.
    fn append(
        &self,
        name: String,
        editor: Option<Uuid>,
        frames: Vec<Frame>,
        limit: i64,
    ) -> Write<AppendOutcome>;

    /// With a version, only if the frame still has it; then a repeat finds another version.
    fn replace(
        &self,
        name: String,
        editor: Option<Uuid>,
        number: i64,
        frame: Frame,
        version: Option<FrameVersion>,
    ) -> Write<EditOutcome>;

    /// The numbers of the later frames are less by one from then on, so a repeat deletes another frame.
    fn delete(&self, name: String, editor: Option<Uuid>, number: i64) -> Write<EditOutcome>;

    /// These frames of the room, in this order: the first, and of the others as many as come to
    /// `limit` bytes. A frame that is gone is left out.
    fn bodies(&self, room: i64, seqs: Vec<i64>, limit: i64) -> StoreFuture<'_, Vec<(i64, Bytes)>>;

    fn room(&self, name: String) -> StoreFuture<'_, Option<Room>> {
        let rows = self.rows("jobs_room", ROOM, values_of![name]);
        async move { Ok(rows.await?.first().map(Room::from_row)) }.boxed()
    }

    /// Newest first.
    fn rooms(&self, page: Page) -> StoreFuture<'_, ListPage<Room>> {
        let rows = self.rows("jobs_rooms", ROOMS, values_of![page.limit, page.offset]);
        async move { page_of(&rows.await?, Room::from_row) }.boxed()
    }

    /// A room, and the frame of this number if it is stored.
    fn frame(
        &self,
        name: String,
        number: i64,
    ) -> StoreFuture<'_, Option<(Room, Option<StoredFrame>)>> {
        let rows = self.rows("jobs_frame", FRAME, values_of![name, number]);
        let read = |row: &Row| {
            let seq: Option<i64> = row.get("seq");
            let stored = seq.map(|seq| StoredFrame {
                version: FrameVersion {
                    seq,
                    revision: row.get("revision"),
                },
                frame: Frame::kept(row.get("body")),
            });
            (Room::from_row(row), stored)
        };
        async move { Ok(rows.await?.first().map(read)) }.boxed()
    }

    /// A room, and the runs of the frames that are stored from `start` to before `stop`.
    fn locate(&self, name: String, start: i64, stop: i64) -> StoreFuture<'_, Option<(Room, Runs)>> {
        let rows = self.rows("jobs_locate", RUNS, values_of![name, start, stop]);
        async move {
            let rows = rows.await?;
            // A room without runs is one row without a run.
            let runs = rows.iter().filter(|row| !row.is_null("number"));
            let runs = Runs(runs.map(Run::from_row).collect());
            Ok(rows.first().map(|first| (Room::from_row(first), runs)))
        }
        .boxed()
    }
}

impl Room {
    /// From a row with the columns of `jobs_room`.
    pub(super) fn from_row(row: &Row) -> Self {
        let mounted: Option<i64> = row.get("mounted");
        let by: Option<Uuid> = row.get("mounted_by");
        Self {
            id: row.get("id"),
            name: row.get("name"),
            stored: row.get("frames"),
            mount: mounted.zip(by).map(|(frames, user)| Mount { frames, user }),
            changes: row.get("changes"),
            locked_by: row.get("locked_by"),
            created_at: row.get("created_at"),
        }
    }
}

impl Run {
    pub(super) fn from_row(row: &Row) -> Self {
        Self {
            number: row.get("number"),
            seq: row.get("seq"),
            length: row.get("length"),
        }
    }
}
