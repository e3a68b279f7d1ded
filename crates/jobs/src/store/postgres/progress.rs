//! Progress trackers on PostgreSQL.

use wakeline_bus::Write;
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    progress::{NewTracker, TrackerStart},
    store::{
        Commit, Progress, in_micros, only,
        progress::{KEPT, MOST},
        values_of, write,
    },
    wakes,
};

impl Progress for PostgresStore {
    fn start_progress(&self, room: String, tracker: NewTracker) -> Write<TrackerStart> {
        write(
            self,
            Commit::Alone("jobs_progress_start"),
            "SELECT wakeline.jobs_progress_start($1, $2, $3, $4, $5, $6) AS outcome",
            values_of![
                room,
                tracker.id,
                tracker.description,
                tracker.unit,
                MOST,
                in_micros(KEPT),
            ],
            wakes::nobody,
            |rows| {
                Ok(match only(rows)?.get::<i64>("outcome") {
                    0 => TrackerStart::Done,
                    1 => TrackerStart::NoRoom,
                    2 => TrackerStart::TooMany,
                    other => {
                        let unknown = format!("there is no outcome {other}");
                        return Err(Error::OutcomeUnknown(unknown));
                    }
                })
            },
        )
    }
}
