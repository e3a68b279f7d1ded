//! Rooms: made, mounted, and given back when their provider is gone.

use std::sync::Arc;

use super::{Frames, no_room, read_only, unprocessable};
use crate::{
    caller::Caller,
    error::Error,
    frame::Draft,
    name::{self, GLOBAL, INTERNAL},
    page::{Page, Paged},
    problem,
    room::{Mount, NewRoom, Room, RoomCreated, Source},
};

/// Names of no room in `copy_from`: to begin with nothing, or with one frame that has nothing.
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
            None | Some(NOTHING) => Source::Nothing,
            Some(EMPTY) => Source::Frame(Draft::new(self.limits.frame).finish()),
            Some(preset) if preset.starts_with('@') => {
                return Err(unprocessable(format!(
                    "body.copy_from: '{preset}' is neither a room nor {EMPTY} nor {NOTHING}"
                )));
            }
            Some(room) => {
                name::check_room(room)?;
                Source::Room(room.to_owned())
            }
        };
        let copied = copy_from.unwrap_or_default();
        let room = NewRoom {
            name,
            user: caller.id,
            frames,
            copy_limit: self.limits.copy,
        };
        match self.store.create_room(room).await? {
            RoomCreated::Found(room) => Ok((room, false)),
            RoomCreated::Done(room) => Ok((room, true)),
            RoomCreated::NoSource => Err(no_room(&copied)),
            RoomCreated::SourceMounted => Err(read_only(&copied)),
            RoomCreated::SourceTooLarge(bytes) => Err(unprocessable(format!(
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

    pub async fn rooms(&self, page: Page) -> Result<Paged<Room>, Error> {
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
        self.to_the_end(async move |this| {
            if frames == 0 {
                return this.give_back(caller, name).await;
            }
            let provider = this.asking.frames_provider(&name).await?;
            let may =
                provider.is_some_and(|provider| caller.is_superuser || provider.user == caller.id);
            if !may {
                // A room that is not there is said to be so.
                this.room(name).await?;
                return Err(Error::forbidden(
                    "Only the owner of a frames provider of the room sets its frame count",
                ));
            }
            let mount = Mount {
                frames,
                user: caller.id,
            };
            let room = this.store.mount(name.clone(), mount).await?;
            let room = room.ok_or_else(|| no_room(&name))?;
            this.tell(&name, "clear", None, Some(room.frame_count()), None);
            Ok(room)
        })
        .await
    }

    /// By who mounted it: the provider may be gone already.
    async fn give_back(&self, caller: Caller, name: String) -> Result<Room, Error> {
        match self.store.unmount(name.clone(), caller.own()).await? {
            Some(room) => {
                self.tell(&name, "clear", None, Some(room.frame_count()), None);
                Ok(room)
            }
            None => match self.room(name).await? {
                room if room.mount.is_none() => Ok(room),
                _ => Err(Error::problem(
                    &problem::FORBIDDEN,
                    "The room was mounted by another user",
                )),
            },
        }
    }

    /// A `frames` provider of the room is gone. If it was the last, so are the frames it had.
    pub async fn provider_gone(self: &Arc<Self>, room: String) -> Result<(), Error> {
        self.to_the_end(async move |this| {
            if this.asking.frames_provider(&room).await?.is_some() {
                return Ok(());
            }
            if let Some(left) = this.store.unmount(room.clone(), None).await? {
                let (count, reason) = (Some(left.frame_count()), Some("provider_disconnected"));
                this.tell(&room, "clear", None, count, reason);
            }
            Ok(())
        })
        .await
    }
}
