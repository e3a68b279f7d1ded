//! The service of rooms and frames: stored frames come from the store, others from the room's
//! `frames` provider by a held read.

mod chat;
mod order;
mod ports;
mod progress;
mod provider_frames;
mod reading;
mod rooms;

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use wakeline_bus::Bus;

use self::order::{ChangeTicket, OrderedEvents};
pub use self::{
    chat::MessagePage,
    order::FramesChange,
    ports::{FailedReads, GroupAbandoned, ProviderReads, RoomEvents},
    reading::{FrameSelection, FrameStream},
};
use crate::{
    caller::Caller,
    error::Error,
    frame::{Frame, FrameLimits, Refusal},
    problem,
    room::{AppendOutcome, EditOutcome, FrameVersion},
    store::frames::Frames as Store,
};

/// How often a merge begins anew because the frame was changed meanwhile.
const MERGES: u32 = 50;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub frame: FrameLimits,
    /// Frames that are appended, or selected by their numbers, at once.
    pub request: usize,
    /// Frames that a room may have, stored or mounted.
    pub room: i64,
    /// Bytes of frames that a new room may begin with.
    pub copy: i64,
    /// Messages of a room's chat that are kept.
    pub messages: i64,
    /// Frames of one read that a provider supplies.
    pub asked: usize,
    /// Of these, requested at the same time.
    pub asked_at_once: usize,
    /// Bytes of them together: they are kept in memory until all are there.
    pub asked_bytes: u64,
    /// How long a read waits for a provider if it sends no `Prefer`.
    pub wait: Duration,
    pub max_wait: Duration,
}

#[derive(Debug)]
pub struct Frames {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    provider_reads: Arc<dyn ProviderReads>,
    room_events: Arc<dyn RoomEvents>,
    ordered_events: OrderedEvents,
    failed_reads: Arc<dyn FailedReads>,
    limits: Limits,
}

impl Frames {
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        bus: Arc<Bus>,
        provider_reads: Arc<dyn ProviderReads>,
        room_events: Arc<dyn RoomEvents>,
        failed_reads: Arc<dyn FailedReads>,
        limits: Limits,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            bus,
            provider_reads,
            ordered_events: OrderedEvents::new(room_events.clone()),
            room_events,
            failed_reads,
            limits,
        })
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Appends all frames or none. Returns the number of the first, and how many the room has then.
    pub async fn append(
        self: &Arc<Self>,
        caller: Caller,
        room: String,
        frames: Vec<Frame>,
    ) -> Result<(i64, i64), Error> {
        let limit = self.limits.room;
        let event = self.change_event(&room);
        let appended = self.store.append(room.clone(), caller.own(), frames, limit);
        let appended = appended.map(move |appended| {
            if let AppendOutcome::Done { total, change, .. } = appended {
                event.committed(change, "add", None, Some(total), None);
            }
            appended
        });
        match appended.commit(&self.bus).await? {
            AppendOutcome::NoRoom => Err(no_room(&room)),
            AppendOutcome::ReadOnly => Err(read_only(&room)),
            AppendOutcome::Locked => Err(locked(&room)),
            AppendOutcome::Full(stored) => Err(unprocessable(format!(
                "body.frames: the room has {stored} frames and may have {limit}, the limit of \
                 this server (jobs.room_frames)"
            ))),
            AppendOutcome::Done { start, total, .. } => Ok((start, total)),
        }
    }

    pub async fn replace(
        self: &Arc<Self>,
        caller: Caller,
        room: String,
        number: i64,
        frame: Frame,
    ) -> Result<(), Error> {
        let edited = self.put(caller, &room, number, frame, None).await?;
        self.edited(&room, number, &edited).map(drop)
    }

    /// Sets these keys in a frame; the other keys stay.
    pub async fn merge(
        self: &Arc<Self>,
        caller: Caller,
        room: String,
        number: i64,
        part: Frame,
    ) -> Result<(), Error> {
        for _ in 0..MERGES {
            let found = self.store.frame(room.clone(), number).await?;
            let (kept, stored) = found.ok_or_else(|| no_room(&room))?;
            if kept.is_locked_for(caller.own()) {
                return Err(locked(&room));
            }
            if kept.mount.is_some() {
                return Err(read_only(&room));
            }
            let stored = stored.ok_or_else(|| no_frame(&[number], kept.frame_count()))?;
            let merged = stored.frame.merged(&part, self.limits.frame);
            let merged = merged.map_err(|refusal| refused("body", &refusal))?;
            match self
                .put(caller, &room, number, merged, Some(stored.version))
                .await?
            {
                EditOutcome::Changed => {}
                edited => return self.edited(&room, number, &edited).map(drop),
            }
        }
        Err(Error::Web(wakeline_web::Problem::unavailable(
            "frame-busy",
            "others change this frame all the time; nothing was done, try again",
        )))
    }

    /// With a version, only if the frame still has it.
    async fn put(
        self: &Arc<Self>,
        caller: Caller,
        room: &str,
        number: i64,
        frame: Frame,
        version: Option<FrameVersion>,
    ) -> Result<EditOutcome, Error> {
        let event = self.change_event(room);
        let edited = self
            .store
            .replace(room.to_owned(), caller.own(), number, frame, version);
        let edited = edited.map(move |edited| {
            if let EditOutcome::Done { change, .. } = edited {
                event.committed(change, "modify", Some(number), None, None);
            }
            edited
        });
        Ok(edited.commit(&self.bus).await?)
    }

    /// Later frames move up. Returns how many the room has then.
    pub async fn delete(
        self: &Arc<Self>,
        caller: Caller,
        room: String,
        number: i64,
    ) -> Result<i64, Error> {
        let event = self.change_event(&room);
        let edited = self.store.delete(room.clone(), caller.own(), number);
        let edited = edited.map(move |edited| {
            if let EditOutcome::Done { total, change } = edited {
                event.committed(change, "delete", Some(number), Some(total), None);
            }
            edited
        });
        let edited = edited.commit(&self.bus).await?;
        self.edited(&room, number, &edited)
    }

    fn edited(&self, room: &str, number: i64, edited: &EditOutcome) -> Result<i64, Error> {
        match edited {
            EditOutcome::NoRoom => Err(no_room(room)),
            EditOutcome::ReadOnly => Err(read_only(room)),
            EditOutcome::Locked => Err(locked(room)),
            EditOutcome::NoFrame(total) => Err(no_frame(&[number], *total)),
            // Only an edit that names a version is refused for another version.
            EditOutcome::Changed => Err(no_frame(&[number], 0)),
            EditOutcome::Done { total, .. } => Ok(*total),
        }
    }

    /// Before the write begins, whose change the event is of.
    fn change_event(&self, room: &str) -> ChangeEvent {
        ChangeEvent(self.ordered_events.begin(room), room.to_owned())
    }

    /// A change that another node has committed.
    pub fn receive_change(&self, number: i64, change: FramesChange) {
        self.ordered_events.receive(number, change);
    }

    fn tell_room(&self, room: &str, event: &str, payload: Value) {
        self.room_events
            .emit(&format!("room:{room}"), event, payload);
    }
}

/// `frames_invalidate` of a write that is under way.
struct ChangeEvent(ChangeTicket, String);

impl ChangeEvent {
    fn committed(
        self,
        change: i64,
        action: &str,
        number: Option<i64>,
        count: Option<i64>,
        reason: Option<&str>,
    ) {
        let Self(ticket, room_id) = self;
        let event = FramesChange {
            room_id,
            action: action.to_owned(),
            indices: number.map(|number| vec![number]),
            count,
            reason: reason.map(str::to_owned),
        };
        ticket.committed(change, event);
    }
}

fn locked(room: &str) -> Error {
    Error::problem(
        &problem::ROOM_LOCKED,
        format!("Room '{room}' is locked: only the user who locked it, or a superuser, changes it"),
    )
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

/// The refusal of a frame at this place of the request.
pub(crate) fn refused(at: &str, refusal: &Refusal) -> Error {
    unprocessable(format!("{at}: {refusal}"))
}
