//! What rooms and frames need of the rest of the door.

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
    provider::{Answer, Provider},
};

/// Questions that are asked together. Whoever gives up on the rest because of one of them says so:
/// then nobody has hung up, and what the provider works on is not asked of it again.
#[derive(Clone, Debug, Default)]
pub struct Together(Arc<AtomicBool>);

impl Together {
    pub fn give_up(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    #[must_use]
    pub fn has_given_up(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Asks providers.
pub trait Asking: Send + Sync + fmt::Debug {
    /// The same held read as a read of the provider: from what is kept, or asked for once however
    /// many want it, and waited for. Not answered in time: `provider-timeout`. Without a timing the
    /// answer was there.
    fn ask(
        &self,
        caller: Caller,
        provider: Provider,
        params: Vec<(String, String)>,
        wait: Duration,
        together: Together,
    ) -> BoxFuture<'_, Result<(Answer, Option<Timing>), Error>>;

    /// The provider of category `frames` that was registered last in this room.
    fn frames_provider(&self, room: &str) -> BoxFuture<'_, Result<Option<Provider>, Error>>;
}

/// Tells everybody in a room of sockets, on every node.
pub trait Telling: Send + Sync + fmt::Debug {
    fn emit(&self, room_name: &str, event: &str, payload: Value);
}

/// Hears what clients say in rooms.
pub trait Hearing: Send + Sync + fmt::Debug {
    /// A provider could not answer what hashes to this. Anybody can say so: whoever hears it looks
    /// whether the caller may speak for the provider.
    fn read_failed(
        &self,
        room: &str,
        provider: &str,
        hash: &str,
        detail: &str,
        caller: Caller,
    ) -> BoxFuture<'_, ()>;
}
