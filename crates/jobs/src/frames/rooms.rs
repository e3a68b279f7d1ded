//! Rooms are created, mounted, and unmounted when their provider is removed.

use std::sync::Arc;

use serde_json::{Value, json};
use wakeline_bus::Write;

use super::{Frames, locked, no_room, read_only, unprocessable};
use crate::{
    caller::Caller,
    error::Error,
    frame::Draft,
    name::{self, GLOBAL, INTERNAL},
    page::{ListPage, Page},
    problem,
    room::{FrameSource, Mount, NewRoom, Room, RoomCreation},
};

/// Values of `copy_from` that name no room: an empty room, or one with a frame without keys.
const NOTHING: &str = "@none";
const EMPTY: &str = "@empty";

impl Frames {
    /// The room, and whether it is new.
    pub async fn create_room(
        &self,
        caller: Caller,
        name: String,
        copy_from: Option<String>,
    ) -> Result<(Room, bool), Error> {
        name::check_room(&name)?;
        if name == GLOBAL || name == INTERNAL {
            return Err(Error::InvalidRoom(format!(
                "'{name}' is no room of its own"
            )));
        }
        let frames = match copy_from.as_deref() {
            None | Some(NOTHING) => FrameSource::Nothing,
            Some(EMPTY) => FrameSource::Frame(Draft::new(self.limits.frame).finish()),
            Some(preset) if preset.starts_with('@') => {
                return Err(unprocessable(format!(
                    "body.copy_from: '{preset}' is neither a room nor {EMPTY} nor {NOTHING}"
                )));
            }
            Some(room) => {
                name::check_room(room)?;
                FrameSource::Room(room.to_owned())
            }
        };
        let copied = copy_from.unwrap_or_default();
        let room = NewRoom {
            name,
            user: caller.id,
            frames,
            copy_limit: self.limits.copy,
        };
        match self.store.create_room(room).commit(&self.bus).await? {
            RoomCreation::Found(room) => Ok((room, false)),
            RoomCreation::Done(room) => Ok((room, true)),
            RoomCreation::NoSource => Err(no_room(&copied)),
            RoomCreation::SourceMounted => Err(read_only(&copied)),
            RoomCreation::SourceTooLarge(bytes) => Err(unprocessable(format!(
                "body.copy_from: the frames of '{copied}' are {bytes} bytes, and {} are copied at \
                 most (jobs.room_copy)",
                self.limits.copy
            ))),
        }
    }

    pub async fn room(&self, name: String) -> Result<Room, Error> {
        let room = self.store.room(name.clone()).await?;
        room.ok_or_else(|| no_room(&name))
    }

    pub async fn rooms(&self, page: Page) -> Result<ListPage<Room>, Error> {
        Ok(self.store.rooms(page).await?)
    }

    /// The owner of the room's `frames` provider says how many frames it has; 0 gives the room back.
    pub async fn mount(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
        frames: i64,
    ) -> Result<Room, Error> {
        if !(0..=self.limits.room).contains(&frames) {
            return Err(unprocessable(format!(
                "body.frame_count: not a number from 0 to {}, the limit of this server \
                 (jobs.room_frames)",
                self.limits.room
            )));
        }
        if frames == 0 {
            return self.give_back(caller, name).await;
        }
        let provider = self.provider_reads.frames_provider(&name).await?;
        let may =
            provider.is_some_and(|provider| caller.is_superuser || provider.user == caller.id);
        if !may {
            // A room that is not there is said to be so.
            self.room(name).await?;
            return Err(Error::forbidden(
                "Only the owner of a frames provider of the room sets its frame count",
            ));
        }
        let mount = Mount {
            frames,
            user: caller.id,
        };
        let mounted = self.store.mount(name.clone(), caller.own(), mount);
        match self.cleared(&name, mounted, None).await? {
            Some(room) => Ok(room),
            None => Err(self
                .room(name)
                .await
                .map_or_else(|none| none, |room| locked(&room.name))),
        }
    }

    /// Locks the room for all users but the caller and superusers, or unlocks it.
    pub async fn lock(
        self: &Arc<Self>,
        caller: Caller,
        name: String,
        is_locked: bool,
    ) -> Result<Room, Error> {
        let (this, id) = (self.clone(), caller.id);
        let locking = self.store.lock(name.clone(), caller.own(), id, is_locked);
        let locking = locking.map(move |room| {
            if let Some(room) = &room {
                this.tell_room(&room.name, "room_update", room_update(room));
            }
            room
        });
        match locking.commit(&self.bus).await? {
            Some(room) => Ok(room),
            None => Err(self
                .room(name)
                .await
                .map_or_else(|none| none, |room| locked(&room.name))),
        }
    }

    /// By the user who mounted it: the provider may be removed already.
    async fn give_back(self: &Arc<Self>, caller: Caller, name: String) -> Result<Room, Error> {
        let unmounted = self.store.unmount(name.clone(), caller.own());
        match self.cleared(&name, unmounted, None).await? {
            Some(room) => Ok(room),
            None => match self.room(name).await? {
                room if room.is_locked_for(caller.own()) => Err(locked(&room.name)),
                room if room.mount.is_none() => Ok(room),
                _ => Err(Error::problem(
                    &problem::FORBIDDEN,
                    "The room was mounted by another user",
                )),
            },
        }
    }

    /// A `frames` provider of the room was removed. If it was the last, the room is unmounted.
    pub async fn provider_gone(self: &Arc<Self>, room: String) -> Result<(), Error> {
        if self.provider_reads.frames_provider(&room).await?.is_some() {
            return Ok(());
        }
        let unmounted = self.store.unmount(room.clone(), None);
        let reason = Some("provider_disconnected");
        self.cleared(&room, unmounted, reason).await.map(drop)
    }

    /// The room has other frames if the write returns one: its clients get an event.
    async fn cleared(
        self: &Arc<Self>,
        name: &str,
        write: Write<Option<Room>>,
        reason: Option<&'static str>,
    ) -> Result<Option<Room>, Error> {
        let event = self.change_event(name);
        let write = write.map(move |room| {
            if let Some(room) = &room {
                let count = Some(room.frame_count());
                event.committed(room.changes, "clear", None, count, reason);
            }
            room
        });
        Ok(write.commit(&self.bus).await?)
    }
}

/// As ZnDraw's clients read it. The description and the default room are of its web page.
fn room_update(room: &Room) -> Value {
    json!({
        "id": room.name,
        "description": null,
        "frame_count": room.frame_count(),
        "locked": room.locked_by.is_some(),
        "is_default": false,
        "metadata": null,
    })
}
