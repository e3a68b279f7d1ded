//! The ports through which rooms and frames use the rest of the door.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::Value;
use wakeline_web::Timing;

use crate::{
    caller::Caller,
    error::Error,
    frames::FramesChange,
    provider::{Answer, Provider},
};

/// Shared by reads that are made as a group. When one of them fails and the group is given up, this
/// is set, so that dropping the other reads does not count as hanging up and their locks stay.
#[derive(Clone, Debug, Default)]
pub struct GroupAbandoned(Arc<AtomicBool>);

impl GroupAbandoned {
    pub fn abandon(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Reads providers.
pub trait ProviderReads: Send + Sync + fmt::Debug {
    /// The same held read as a read of a provider: from the stored answers, or one request however
    /// many readers there are. Without an answer in time the error is `provider-timeout`. Without a
    /// timing the answer was stored.
    fn ask(
        &self,
        caller: Caller,
        provider: Provider,
        params: Vec<(String, String)>,
        wait: Duration,
        group: GroupAbandoned,
    ) -> BoxFuture<'_, Result<(Answer, Option<Timing>), Error>>;

    /// The provider of category `frames` that was registered last in this room.
    fn frames_provider(&self, room: &str) -> BoxFuture<'_, Result<Option<Provider>, Error>>;
}

/// Sends events to the sockets in a room.
pub trait RoomEvents: Send + Sync + fmt::Debug {
    /// On every node.
    fn emit(&self, room_name: &str, event: &str, payload: Value);

    /// `frames_invalidate`, on this node.
    fn emit_frames_change(&self, change: &FramesChange);

    /// The same to the other nodes, which bring it into order by its number.
    fn send_frames_change(&self, number: i64, change: &FramesChange);

    /// Whether there is no other node.
    fn is_alone(&self) -> bool;
}

/// Takes the failed reads that clients report in a room's chat.
pub trait FailedReads: Send + Sync + fmt::Debug {
    /// A provider could not answer the request of this hash. Any client can say so: the receiver
    /// checks whether the caller may speak for the provider.
    fn read_failed(
        &self,
        room: &str,
        provider: &str,
        hash: &str,
        detail: &str,
        caller: Caller,
    ) -> BoxFuture<'_, ()>;
}
