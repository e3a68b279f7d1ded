//! Progress trackers: `ZnDrawTqdm` and `extend` of ZnDraw's client show the clients of a room how far
//! they have come. They are stored, so that a restart of the server does not break off the work.

use std::sync::Arc;

use serde_json::json;

use super::{Frames, no_room, unprocessable};
use crate::{
    error::Error,
    problem,
    progress::{NewTracker, Tracker, TrackerChange, TrackerStart},
};

/// Characters of an id, of a description and of a unit.
const MAX_ID: usize = 255;
const MAX_DESCRIPTION: usize = 1_000;
const MAX_UNIT: usize = 100;

impl Frames {
    /// A tracker with an id that the room has begins anew.
    pub async fn start_progress(
        self: &Arc<Self>,
        room: String,
        tracker: NewTracker,
    ) -> Result<Tracker, Error> {
        if tracker.id.is_empty() {
            return Err(unprocessable("body.progress_id: it is empty"));
        }
        check_text("progress_id", &tracker.id, MAX_ID)?;
        check_text("description", &tracker.description, MAX_DESCRIPTION)?;
        check_text("unit", &tracker.unit, MAX_UNIT)?;
        let started = self.store.start_progress(room.clone(), tracker.clone());
        let (this, name) = (self.clone(), room.clone());
        let event = json!({
            "progress_id": tracker.id,
            "description": tracker.description,
            "unit": tracker.unit,
        });
        let started = started.map(move |started| {
            if started == TrackerStart::Done {
                this.tell_room(&name, "progress_start", event);
            }
            started
        });
        match started.commit(&self.bus).await? {
            TrackerStart::NoRoom => Err(no_room(&room)),
            TrackerStart::TooMany => Err(unprocessable(
                "body.progress_id: the room has as many progress trackers as it may have; end one",
            )),
            TrackerStart::Done => Ok(Tracker {
                id: tracker.id,
                description: tracker.description,
                unit: tracker.unit,
                n: 0,
                total: None,
                elapsed: std::time::Duration::ZERO,
            }),
        }
    }

    pub async fn update_progress(
        self: &Arc<Self>,
        room: String,
        id: String,
        change: TrackerChange,
    ) -> Result<Tracker, Error> {
        let texts = [
            ("description", &change.description, MAX_DESCRIPTION),
            ("unit", &change.unit, MAX_UNIT),
        ];
        for (field, text, most) in texts {
            check_text(field, text.as_deref().unwrap_or_default(), most)?;
        }
        // What did not change is null, as upstream's model has it.
        let event = json!({
            "progress_id": id,
            "description": change.description,
            "n": change.n,
            "total": change.total,
            "elapsed": change.elapsed.map(|elapsed| elapsed.as_secs_f64()),
            "unit": change.unit,
        });
        let updated = self.store.update_progress(room.clone(), id.clone(), change);
        let (this, name) = (self.clone(), room.clone());
        let updated = updated.map(move |updated| {
            if updated.is_some() {
                this.tell_room(&name, "progress_update", event);
            }
            updated
        });
        match updated.commit(&self.bus).await? {
            Some(tracker) => Ok(tracker),
            None => Err(self.no_tracker(room, &id).await),
        }
    }

    pub async fn end_progress(self: &Arc<Self>, room: String, id: String) -> Result<(), Error> {
        let ended = self.store.end_progress(room.clone(), id.clone());
        let (this, name) = (self.clone(), room.clone());
        let event = json!({ "progress_id": id });
        let ended = ended.map(move |was_there| {
            if was_there {
                this.tell_room(&name, "progress_complete", event);
            }
            was_there
        });
        if ended.commit(&self.bus).await? {
            return Ok(());
        }
        Err(self.no_tracker(room, &id).await)
    }

    pub async fn trackers(&self, room: String) -> Result<Vec<Tracker>, Error> {
        Ok(self.store.trackers(room).await?)
    }

    async fn no_tracker(&self, room: String, id: &str) -> Error {
        match self.room(room).await {
            Err(no_room) => no_room,
            Ok(_) => Error::problem(
                &problem::PROGRESS_NOT_FOUND,
                format!("Progress tracker {id} not found"),
            ),
        }
    }
}

fn check_text(field: &str, text: &str, most: usize) -> Result<(), Error> {
    if text.contains('\0') || text.chars().count() > most {
        return Err(unprocessable(format!(
            "body.{field}: a text of at most {most} characters without NUL is expected"
        )));
    }
    Ok(())
}
