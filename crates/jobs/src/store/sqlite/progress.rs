//! Progress trackers on SQLite.

use wakeline_bus::Write;

use super::SqliteStore;
use crate::{
    progress::{NewTracker, TrackerStart},
    store::{
        Progress, in_micros,
        progress::{KEPT, MOST},
    },
    wakes,
};

impl Progress for SqliteStore {
    fn start_progress(&self, room: String, tracker: NewTracker) -> Write<TrackerStart> {
        self.write("jobs_progress_start", wakes::nobody, move |session| {
            let sql = "SELECT id FROM jobs_room WHERE name = ?1";
            let Some(room) = session.optional::<i64>(sql, [&room])? else {
                return Ok(TrackerStart::NoRoom);
            };
            let old = session.now - in_micros(KEPT);
            let sql = "DELETE FROM jobs_progress WHERE room_id = ?1
                AND (updated_at <= ?2 OR id = ?3)";
            session.execute(sql, (room, old, &tracker.id))?;
            let sql = "SELECT count(*) FROM jobs_progress WHERE room_id = ?1";
            if session.value::<i64>(sql, [room])? >= MOST {
                return Ok(TrackerStart::TooMany);
            }
            let sql = "INSERT INTO jobs_progress (room_id, id, description, unit, updated_at)
                VALUES (?1, ?2, ?3, ?4, ?5)";
            let NewTracker {
                id,
                description,
                unit,
            } = &tracker;
            session.execute(sql, (room, id, description, unit, session.now))?;
            Ok(TrackerStart::Done)
        })
    }
}
