//! Whether an answer was delivered: what was claimed for a client that hung up must be released.

use std::{
    convert::Infallible,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use axum::{body::Body, extract::FromRequestParts};
use bytes::Bytes;
use http::request::Parts;
use http_body::{Frame, SizeHint};

/// Of an answer over HTTP/2: the payload of one frame.
const HTTP2_CHUNK: usize = 16 << 10;

/// Guards what an answer hands out. When it is dropped without [`DeliveryGuard::delivered`], the
/// answer was not delivered, and the guard releases it.
pub trait DeliveryGuard: Send + 'static {
    fn delivered(self);
}

/// The answers of a connection that its socket has not accepted yet. The server puts it into each
/// request and calls [`UnsentAnswers::sent`] after each flush. When the connection ends, it is dropped
/// with the guards that are left.
#[derive(Clone, Default)]
pub struct UnsentAnswers {
    /// `None` without a connection, as in a door's own tests: an answer that was taken is delivered.
    guards: Option<Arc<Mutex<Guards>>>,
    /// HTTP/2 takes more of a body than it can send, but no more than the connection's buffer. So the
    /// body comes in chunks there, and when its end is asked for, at most that buffer is unsent.
    is_http2: bool,
}

type Guards = Vec<Box<dyn UnsentGuard>>;

/// A [`DeliveryGuard`] in a box.
trait UnsentGuard: Send {
    fn delivered(self: Box<Self>);
}

impl<G: DeliveryGuard> UnsentGuard for G {
    fn delivered(self: Box<Self>) {
        DeliveryGuard::delivered(*self);
    }
}

impl UnsentAnswers {
    /// The unsent answers of a new connection.
    #[must_use]
    pub fn of_connection(is_http2: bool) -> Self {
        Self {
            guards: Some(Arc::default()),
            is_http2,
        }
    }

    /// The socket has accepted all that was written so far.
    pub fn sent(&self) {
        let Some(guards) = &self.guards else { return };
        let mut guards = guards.lock().unwrap_or_else(PoisonError::into_inner);
        let delivered = mem::take(&mut *guards);
        drop(guards);
        for guard in delivered {
            guard.delivered();
        }
    }

    fn add(&self, guard: impl DeliveryGuard) {
        match &self.guards {
            None => guard.delivered(),
            Some(guards) => {
                let mut guards = guards.lock().unwrap_or_else(PoisonError::into_inner);
                guards.push(Box::new(guard));
            }
        }
    }
}

impl std::fmt::Debug for UnsentAnswers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("UnsentAnswers")
            .field("is_http2", &self.is_http2)
            .finish_non_exhaustive()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for UnsentAnswers {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_default())
    }
}

/// A body whose guard learns that the connection's socket has accepted the whole. If the client hung
/// up before, the connection drops the body or the guard, and the guard releases.
///
/// Accepted is not received: what the system has taken and the client has not read comes back when
/// its lease ends.
pub struct Delivery<G: DeliveryGuard> {
    bytes: Option<Bytes>,
    guard: Option<G>,
    unsent: UnsentAnswers,
}

impl<G: DeliveryGuard> std::fmt::Debug for Delivery<G> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Delivery")
            .field("taken", &self.bytes.is_none())
            .finish_non_exhaustive()
    }
}

impl<G: DeliveryGuard + Unpin> Delivery<G> {
    pub fn body(bytes: Bytes, guard: G, unsent: UnsentAnswers) -> Body {
        Body::new(Self {
            bytes: Some(bytes),
            guard: Some(guard),
            unsent,
        })
    }
}

impl<G: DeliveryGuard + Unpin> http_body::Body for Delivery<G> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let is_http2 = self.unsent.is_http2;
        let bytes = match &mut self.bytes {
            Some(bytes) if is_http2 && bytes.len() > HTTP2_CHUNK => {
                Some(bytes.split_to(HTTP2_CHUNK))
            }
            rest => rest.take(),
        };
        if (bytes.is_none() || !is_http2)
            && let Some(guard) = self.guard.take()
        {
            self.unsent.add(guard);
        }
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none() && self.guard.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use http_body_util::BodyExt;

    use super::*;

    #[derive(Clone, Debug, Default)]
    struct Counts {
        delivered: Arc<AtomicUsize>,
        released: Arc<AtomicUsize>,
    }

    impl Counts {
        fn of(&self) -> (usize, usize) {
            (self.delivered.load(SeqCst), self.released.load(SeqCst))
        }
    }

    struct Guard(Option<Counts>);

    impl DeliveryGuard for Guard {
        fn delivered(mut self) {
            let counts = self.0.take().unwrap();
            counts.delivered.fetch_add(1, SeqCst);
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            if let Some(counts) = self.0.take() {
                counts.released.fetch_add(1, SeqCst);
            }
        }
    }

    fn body(counts: &Counts, unsent: &UnsentAnswers) -> Body {
        Delivery::body("x".into(), Guard(Some(counts.clone())), unsent.clone())
    }

    #[tokio::test]
    async fn an_answer_is_delivered_when_the_socket_has_accepted_it() {
        for is_http2 in [false, true] {
            let (counts, unsent) = (Counts::default(), UnsentAnswers::of_connection(is_http2));
            let mut body = body(&counts, &unsent);
            body.frame().await.unwrap().unwrap();
            if is_http2 {
                // The window may have had no room for all of it.
                unsent.sent();
                assert_eq!(counts.of(), (0, 0));
                assert!(body.frame().await.is_none());
            }
            drop(body);
            assert_eq!(counts.of(), (0, 0));
            unsent.sent();
            assert_eq!(counts.of(), (1, 0));
        }
    }

    #[tokio::test]
    async fn an_answer_is_released_when_its_connection_ends_before() {
        let (counts, unsent) = (Counts::default(), UnsentAnswers::of_connection(false));
        let mut taken = body(&counts, &unsent);
        taken.frame().await.unwrap().unwrap();
        drop(taken);
        assert_eq!(counts.of(), (0, 0));
        drop(unsent);
        assert_eq!(counts.of(), (0, 1));

        drop(body(&counts, &UnsentAnswers::of_connection(false)));
        assert_eq!(counts.of(), (0, 2));
    }

    #[tokio::test]
    async fn without_a_connection_an_answer_counts_as_delivered_when_its_body_is_read() {
        let counts = Counts::default();
        body(&counts, &UnsentAnswers::default())
            .collect()
            .await
            .unwrap();
        assert_eq!(counts.of(), (1, 0));
    }
}
