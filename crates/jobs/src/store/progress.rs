//! The durable steps of progress trackers.

use std::time::Duration;

use futures_util::FutureExt;
use wakeline_bus::Write;

use super::{Commit, Query, Row, StoreFuture, in_micros, values_of, write};
use crate::{
    progress::{NewTracker, Tracker, TrackerChange, TrackerStart},
    wakes,
};

/// A tracker whose client has died stays for so long.
pub(super) const KEPT: Duration = Duration::from_secs(60 * 60);
/// Trackers of a room at once.
pub(super) const MOST: i64 = 1_000;

const UPDATE: &str = "UPDATE wakeline.jobs_progress SET
        description = coalesce($3, description), unit = coalesce($4, unit), n = coalesce($5, n),
        total = coalesce($6, total), elapsed_us = coalesce($7, elapsed_us), updated_at = {now}
    WHERE room_id = (SELECT r.id FROM wakeline.jobs_room r WHERE r.name = $1) AND id = $2
        AND updated_at > {now} - $8
    RETURNING *";

const END: &str = "DELETE FROM wakeline.jobs_progress
    WHERE room_id = (SELECT r.id FROM wakeline.jobs_room r WHERE r.name = $1) AND id = $2
    RETURNING *";

const TRACKERS: &str = "SELECT p.* FROM wakeline.jobs_progress p
    JOIN wakeline.jobs_room r ON r.id = p.room_id
    WHERE r.name = $1 AND p.updated_at > {now} - $2 ORDER BY p.id";

pub trait Progress: Query {
    /// Adds a tracker at its beginning, also in place of one with the same id: so does a repeat.
    fn start_progress(&self, room: String, tracker: NewTracker) -> Write<TrackerStart>;

    /// `None`: there is no such tracker. A repeat changes nothing more.
    fn update_progress(
        &self,
        room: String,
        id: String,
        change: TrackerChange,
    ) -> Write<Option<Tracker>> {
        let elapsed = change.elapsed.map(in_micros);
        let parameters = values_of![
            room,
            id,
            change.description,
            change.unit,
            change.n,
            change.total,
            elapsed,
            in_micros(KEPT),
        ];
        // Alone: in one transaction, the trackers of two nodes would be locked in any order.
        let commit = Commit::Alone("jobs_progress_update");
        write(self, commit, UPDATE, parameters, wakes::nobody, |rows| {
            Ok(rows.first().map(Tracker::from_row))
        })
    }

    /// Whether there was such a tracker. A repeat does not find it.
    fn end_progress(&self, room: String, id: String) -> Write<bool> {
        let (parameters, commit) = (values_of![room, id], Commit::Alone("jobs_progress_end"));
        write(self, commit, END, parameters, wakes::nobody, |rows| {
            Ok(!rows.is_empty())
        })
    }

    fn trackers(&self, room: String) -> StoreFuture<'_, Vec<Tracker>> {
        let parameters = values_of![room, in_micros(KEPT)];
        let rows = self.rows("jobs_trackers", TRACKERS, parameters);
        async move { Ok(rows.await?.iter().map(Tracker::from_row).collect()) }.boxed()
    }
}

impl Tracker {
    fn from_row(row: &Row) -> Self {
        let elapsed: i64 = row.get("elapsed_us");
        Self {
            id: row.get("id"),
            description: row.get("description"),
            unit: row.get("unit"),
            n: row.get("n"),
            total: row.get("total"),
            elapsed: Duration::from_micros(elapsed.unsigned_abs()),
        }
    }
}
