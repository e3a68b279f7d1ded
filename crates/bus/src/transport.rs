//! The interface of PostgreSQL and Redis as carriers of the bus' messages.

use futures_util::{future::BoxFuture, stream::BoxStream};

/// The connection broke or was not made. Logged and retried.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TransportError(pub(crate) String);

pub(crate) trait Transport: Send + Sync + 'static {
    fn kind(&self) -> &'static str;

    /// What the operator should check when nothing that is sent comes back.
    fn hint_when_silent(&self) -> &'static str;

    /// The longest message.
    fn max_bytes(&self) -> usize;

    /// Subscribes on a new connection. The stream ends with that connection; messages sent before
    /// this returned may be missing from it.
    fn listen(&self) -> BoxFuture<'_, Result<BoxStream<'static, String>, TransportError>>;

    /// Sends on another connection than the listening one, so that a canary that comes back has
    /// passed through the server, and a pooler if there is one. When the future is dropped, the
    /// next send takes a new connection, because this one may hang for ever.
    fn send(&self, messages: Vec<String>) -> BoxFuture<'_, Result<(), TransportError>>;
}
