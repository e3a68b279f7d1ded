//! What rooms and frames need of the rest of the door.

use std::{fmt, time::Duration};

use futures_util::future::BoxFuture;
use serde_json::Value;
use wakeline_web::Timing;

use crate::{
    caller::Caller,
    error::Error,
    provider::{Answer, Provider},
};

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
