//! The durable steps of rooms and their frames.
//!
//! A frame keeps the number under which it was stored (its `seq`) for ever; its number in the room
//! is found through the room's runs. So a delete moves no frame: it costs a row, and one small row
//! more for every gap that lies behind it.

use bytes::Bytes;

use super::Step;
use crate::{
    frame::Frame,
    page::{Page, Paged},
    room::{Appended, Edited, Mount, NewRoom, Room, RoomCreated, Runs, Stamp},
};
use uuid::Uuid;
use wakeline_bus::Write;

/// A frame and which one it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub stamp: Stamp,
    pub frame: Frame,
}

/// Each method is one atomic step. Those that write take the room for themselves: they are done
/// one after the other.
pub trait Frames: Send + Sync + std::fmt::Debug {
    /// Makes a room, with its frames, unless it is there.
    fn create_room(&self, room: NewRoom) -> Write<RoomCreated>;

    fn room(&self, name: String) -> Step<'_, Option<Room>>;

    /// Newest first.
    fn rooms(&self, page: Page) -> Step<'_, Paged<Room>>;

    /// Says whose frames the room has. `None`: there is no such room.
    fn mount(&self, name: String, mount: Mount) -> Write<Option<Room>>;

    /// Takes the mount off; with a user, only this one's. Gives the room if it had it.
    fn unmount(&self, name: String, user: Option<Uuid>) -> Write<Option<Room>>;

    /// All of them or none, behind those that are there; at most `limit` in the room.
    fn append(&self, name: String, frames: Vec<Frame>, limit: i64) -> Write<Appended>;

    /// With a stamp, only if the frame is still that one.
    fn replace(
        &self,
        name: String,
        number: i64,
        frame: Frame,
        stamp: Option<Stamp>,
    ) -> Write<Edited>;

    /// Those after it have numbers less by one from then on.
    fn delete(&self, name: String, number: i64) -> Write<Edited>;

    /// A room, and the frame if it is stored.
    fn frame(&self, name: String, number: i64) -> Step<'_, Option<(Room, Option<Stored>)>>;

    /// A room, and where the frames are that are stored from `start` to before `stop`.
    fn locate(&self, name: String, start: i64, stop: i64) -> Step<'_, Option<(Room, Runs)>>;

    /// These frames of the room, in this order: the first, and of the others as many as come to
    /// `limit` bytes. One that is gone is left out.
    fn bodies(&self, room: i64, seqs: Vec<i64>, limit: i64) -> Step<'_, Vec<(i64, Bytes)>>;
}
