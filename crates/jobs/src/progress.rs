//! Progress trackers of a room: how far something has come that its clients see.

use std::time::Duration;

use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracker {
    pub id: String,
    pub description: String,
    pub unit: String,
    pub n: i64,
    pub total: Option<i64>,
    pub elapsed: Duration,
}

impl Tracker {
    /// As ZnDraw's clients read it.
    #[must_use]
    pub fn document(&self) -> Value {
        json!({
            "progress_id": self.id,
            "description": self.description,
            "n": self.n,
            "total": self.total,
            "elapsed": self.elapsed.as_secs_f64(),
            "unit": self.unit,
        })
    }
}

/// What a tracker begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTracker {
    pub id: String,
    pub description: String,
    pub unit: String,
}

/// The fields that change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackerChange {
    pub description: Option<String>,
    pub unit: Option<String>,
    pub n: Option<i64>,
    pub total: Option<i64>,
    pub elapsed: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackerStart {
    Done,
    NoRoom,
    /// The room has as many trackers as it may have.
    TooMany,
}
