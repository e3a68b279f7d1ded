//! Knowing whether an answer left: what was claimed for a caller who is gone must go back.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// Something handed out with an answer. When it is dropped without [`DeliveryGuard::delivered`], the
/// answer was never taken, and it sees to its own return.
pub trait DeliveryGuard: Send + 'static {
    fn delivered(self);
}

/// A body that tells its parcel when the connection has taken it. If the client hung up before,
/// the connection drops the body and with it the parcel.
///
/// Taken is not received: a client that is gone after that gets its messages back by the lease.
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
