//! The service of rooms and frames: what is stored is served from the store, what is not is asked
//! for of the room's `frames` provider by a held read.

mod asked;
mod chat;
mod neighbours;
mod reading;
mod rooms;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use wakeline_bus::Bus;

pub use self::{
    chat::Message,
    neighbours::{Asking, Hearing, Telling, Together},
    reading::{Reading, Wanted},
};
use crate::{
    error::Error,
    frame::{Frame, FrameLimits, Refusal},
    problem,
    room::{Appended, Edited, Stamp},
    store::frames::Frames as Store,
};

/// How often a merge begins anew because the frame was changed meanwhile.
const MERGES: u32 = 50;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub frame: FrameLimits,
    /// Frames that are appended, or asked for by their numbers, at once.
    pub request: usize,
    /// Frames that a room may have, stored or mounted.
    pub room: i64,
    /// Bytes of frames that a new room may begin with.
    pub copy: i64,
    /// Frames of one read that are asked for of a provider.
    pub asked: usize,
    /// Of these, under way at once.
    pub asked_at_once: usize,
    /// Bytes of them together: they are kept in memory until all are there.
    pub asked_bytes: u64,
    /// How long a read waits for a provider that is not told how long.
    pub wait: Duration,
    pub max_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: FrameLimits::default(),
            request: 1_000,
            room: 1_000_000,
            copy: 256 << 20,
            asked: 1_000,
            asked_at_once: 32,
            asked_bytes: 256 << 20,
            wait: Duration::from_secs(5),
            max_wait: Duration::from_secs(30),
        }
    }
}

#[derive(Debug)]
pub struct Frames {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    asking: Arc<dyn Asking>,
    telling: Arc<dyn Telling>,
    hearing: Arc<dyn Hearing>,
    limits: Limits,
}

impl Frames {
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        bus: Arc<Bus>,
        asking: Arc<dyn Asking>,
        telling: Arc<dyn Telling>,
        hearing: Arc<dyn Hearing>,
        limits: Limits,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            bus,
            asking,
            telling,
            hearing,
            limits,
        })
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// All of them or none. The number of the first, and how many the room has then.
    pub async fn append(
        self: &Arc<Self>,
        room: String,
        frames: Vec<Frame>,
    ) -> Result<(i64, i64), Error> {
        let limit = self.limits.room;
        let (this, name) = (self.clone(), room.clone());
        let appended = self.store.append(room.clone(), frames, limit);
        let appended = appended.map(move |appended| {
            if let Appended::Done { total, .. } = appended {
                this.tell(&name, "add", None, Some(total), None);
            }
            appended
        });
        match appended.commit(&self.bus).await? {
            Appended::NoRoom => Err(no_room(&room)),
            Appended::ReadOnly => Err(read_only(&room)),
            Appended::Full(stored) => Err(unprocessable(format!(
                "body.frames: the room has {stored} frames and may have {limit}, the limit of \
                 this server (jobs.room_frames)"
            ))),
            Appended::Done { start, total } => Ok((start, total)),
        }
    }

    pub async fn replace(
        self: &Arc<Self>,
        room: String,
        number: i64,
        frame: Frame,
    ) -> Result<(), Error> {
        let edited = self.put(&room, number, frame, None).await?;
        self.edited(&room, number, &edited).map(drop)
    }

    /// Puts these keys into a frame, beside or in the place of those that it has.
    pub async fn merge(
        self: &Arc<Self>,
        room: String,
        number: i64,
        part: Frame,
    ) -> Result<(), Error> {
        for _ in 0..MERGES {
            let found = self.store.frame(room.clone(), number).await?;
            let (kept, stored) = found.ok_or_else(|| no_room(&room))?;
            if kept.mount.is_some() {
                return Err(read_only(&room));
            }
            let stored = stored.ok_or_else(|| no_frame(&[number], kept.frame_count()))?;
            let merged = stored.frame.merged(&part, self.limits.frame);
            let merged = merged.map_err(|refusal| refused("body", &refusal))?;
            match self.put(&room, number, merged, Some(stored.stamp)).await? {
                Edited::Changed => {}
                edited => return self.edited(&room, number, &edited).map(drop),
            }
        }
        Err(Error::Web(wakeline_web::Problem::unavailable(
            "frame-busy",
            "others change this frame all the time; nothing was done, try again",
        )))
    }

    /// With a stamp, only if the frame is still that one.
    async fn put(
        self: &Arc<Self>,
        room: &str,
        number: i64,
        frame: Frame,
        stamp: Option<Stamp>,
    ) -> Result<Edited, Error> {
        let (this, name) = (self.clone(), room.to_owned());
        let edited = self.store.replace(room.to_owned(), number, frame, stamp);
        let edited = edited.map(move |edited| {
            if let Edited::Done(_) = edited {
                this.tell(&name, "modify", Some(number), None, None);
            }
            edited
        });
        Ok(edited.commit(&self.bus).await?)
    }

    /// Those after it move up. How many the room has then.
    pub async fn delete(self: &Arc<Self>, room: String, number: i64) -> Result<i64, Error> {
        let (this, name) = (self.clone(), room.clone());
        let edited = self.store.delete(room.clone(), number).map(move |edited| {
            if let Edited::Done(total) = edited {
                this.tell(&name, "delete", Some(number), Some(total), None);
            }
            edited
        });
        let edited = edited.commit(&self.bus).await?;
        self.edited(&room, number, &edited)
    }

    fn edited(&self, room: &str, number: i64, edited: &Edited) -> Result<i64, Error> {
        match edited {
            Edited::NoRoom => Err(no_room(room)),
            Edited::ReadOnly => Err(read_only(room)),
            Edited::NoFrame(total) => Err(no_frame(&[number], *total)),
            // Only what asks for a state of a frame is told that it has another.
            Edited::Changed => Err(no_frame(&[number], 0)),
            Edited::Done(total) => Ok(*total),
        }
    }

    /// `frames_invalidate`, as ZnDraw's clients read it.
    fn tell(
        &self,
        room: &str,
        action: &str,
        number: Option<i64>,
        count: Option<i64>,
        reason: Option<&str>,
    ) {
        let payload = json!({
            "room_id": room,
            "action": action,
            "indices": number.map(|number| [number]),
            "count": count,
            "reason": reason,
        });
        self.tell_room(room, "frames_invalidate", payload);
    }

    fn tell_room(&self, room: &str, event: &str, payload: Value) {
        self.telling.emit(&format!("room:{room}"), event, payload);
    }
}

fn no_room(room: &str) -> Error {
    Error::problem(&problem::ROOM_NOT_FOUND, format!("Room '{room}' not found"))
}

fn read_only(room: &str) -> Error {
    Error::problem(
        &problem::ROOM_READ_ONLY,
        format!("Room '{room}' is read-only: its frames come from a provider"),
    )
}

fn no_frame(numbers: &[i64], total: i64) -> Error {
    const SHOWN: usize = 10;
    let shown: Vec<_> = numbers.iter().take(SHOWN).map(i64::to_string).collect();
    let more = if numbers.len() > SHOWN { ", …" } else { "" };
    let range = match total {
        0 => "the room has no frames".to_owned(),
        total => format!("the room has frames 0 to {}", total - 1),
    };
    let detail = format!("Frame {}{more} not found: {range}", shown.join(", "));
    Error::problem(&problem::FRAME_NOT_FOUND, detail)
}

fn unprocessable(detail: impl Into<String>) -> Error {
    Error::problem(&problem::UNPROCESSABLE_CONTENT, detail)
}

/// What was sent at this place is no frame here.
pub(crate) fn refused(at: &str, refusal: &Refusal) -> Error {
    unprocessable(format!("{at}: {refusal}"))
}
