//! What the bus needs of whatever carries its messages.

use futures_util::{future::BoxFuture, stream::BoxStream};

/// The line is down, or never came up. Only ever logged and retried.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TransportError(pub(crate) String);

pub(crate) trait Transport: Send + Sync + 'static {
    fn kind(&self) -> &'static str;

    /// What whoever runs the server should look at when it subscribes and hears nothing.
    fn when_silent(&self) -> &'static str;

    /// The longest message it carries.
    fn max_bytes(&self) -> usize;

    /// Subscribes on a connection of its own. The stream ends when that connection does; what was
    /// published before this returned may be missing from it.
    fn listen(&self) -> BoxFuture<'_, Result<BoxStream<'static, String>, TransportError>>;

    /// Sends on another connection than the one that listens: what comes back has made the whole
    /// way, also through a pooler. Dropped half way, the next send takes a new connection: this
    /// one may hang for ever.
    fn send(&self, messages: Vec<String>) -> BoxFuture<'_, Result<(), TransportError>>;
}
