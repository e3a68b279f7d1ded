//! Rooms with frames.

use uuid::Uuid;

use crate::frame::Frame;

/// A room. Its stored frames are numbered from 0, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    pub id: i64,
    pub name: String,
    /// How many frames are stored.
    pub stored: i64,
    /// Its frames come from a provider.
    pub mount: Option<Mount>,
    /// How often its frames have changed.
    pub changes: i64,
    /// The user who locked it.
    pub locked_by: Option<Uuid>,
    /// Microseconds since 1970.
    pub created_at: i64,
}

impl Room {
    /// Whether it is locked for this user; `None`: a superuser.
    #[must_use]
    pub fn is_locked_for(&self, editor: Option<Uuid>) -> bool {
        let another = |by| editor.is_some_and(|editor| editor != by);
        self.locked_by.is_some_and(another)
    }

    /// Stored or mounted: frames that are stored come before what the provider has.
    #[must_use]
    pub fn frame_count(&self) -> i64 {
        let mounted = self.mount.map_or(0, |mount| mount.frames);
        self.stored.max(mounted)
    }
}

/// The frames that a provider has for a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mount {
    pub frames: i64,
    /// The user who mounted the room.
    pub user: Uuid,
}

#[derive(Clone, Debug)]
pub struct NewRoom {
    pub name: String,
    pub user: Uuid,
    pub frames: FrameSource,
    /// Bytes of another room's frames that are copied at most.
    pub copy_limit: i64,
}

/// What a new room begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameSource {
    Nothing,
    Frame(Frame),
    Room(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomCreation {
    /// The room exists.
    Found(Room),
    Done(Room),
    /// The room to be copied is not there.
    NoSource,
    /// The frames of the room to be copied are a provider's.
    SourceMounted,
    /// So many bytes are more than are copied.
    SourceTooLarge(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendOutcome {
    NoRoom,
    ReadOnly,
    Locked,
    /// The room would have more frames than a room may have; it has this many.
    Full(i64),
    Done {
        start: i64,
        total: i64,
        /// The number of the change: a room's changes are numbered in the order of their commits.
        change: i64,
    },
}

/// The outcome of an edit of one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    NoRoom,
    ReadOnly,
    Locked,
    /// The room has so many frames, and none of this number.
    NoFrame(i64),
    /// The frame has another version by now.
    Changed,
    /// The room has so many frames now.
    Done {
        total: i64,
        change: i64,
    },
}

/// The version of a stored frame: a frame that was replaced or moved has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameVersion {
    pub seq: i64,
    pub revision: i64,
}

/// Frames that were stored one after the other, and of which none in between was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Of its first frame, as is `seq`.
    pub number: i64,
    pub seq: i64,
    pub length: i64,
}

/// The runs of frames of some numbers, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs(pub Vec<Run>);

impl Runs {
    #[must_use]
    pub fn seq(&self, number: i64) -> Option<i64> {
        let after = self.0.partition_point(|run| run.number <= number);
        let run = self.0.get(after.checked_sub(1)?)?;
        let offset = number - run.number;
        (offset < run.length).then(|| run.seq + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_frame_number_is_found_in_its_run() {
        let run = |number, seq, length| Run {
            number,
            seq,
            length,
        };
        let runs = Runs(vec![run(2, 10, 3), run(5, 20, 1), run(6, 22, 2)]);
        let found: Vec<_> = (0..9).map(|number| runs.seq(number)).collect();
        let expected = [
            None,
            None,
            Some(10),
            Some(11),
            Some(12),
            Some(20),
            Some(22),
            Some(23),
            None,
        ];
        assert_eq!(found, expected);
        assert_eq!(Runs::default().seq(0), None);
    }
}
