//! Whether an answer was delivered: what was claimed for a client that hung up must be released.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// Guards what an answer hands out. When it is dropped without [`DeliveryGuard::delivered`], the
/// answer was not delivered, and the guard releases it.
pub trait DeliveryGuard: Send + 'static {
    fn delivered(self);
}

/// A body that tells its guard when the connection has taken it. If the client hung up before, the
/// connection drops the body and with it the guard.
///
/// Taken is not received: if the client is gone after that, the lease returns its messages.
pub struct Delivery<P: DeliveryGuard> {
    bytes: Option<Bytes>,
    guard: Option<P>,
}

impl<P: DeliveryGuard> std::fmt::Debug for Delivery<P> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Delivery")
            .field("taken", &self.bytes.is_none())
            .finish()
    }
}

impl<P: DeliveryGuard + Unpin> Delivery<P> {
    pub fn body(bytes: Bytes, guard: P) -> Body {
        Body::new(Self {
            bytes: Some(bytes),
            guard: Some(guard),
        })
    }
}

impl<P: DeliveryGuard + Unpin> http_body::Body for Delivery<P> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(guard) = self.guard.take() {
            guard.delivered();
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
