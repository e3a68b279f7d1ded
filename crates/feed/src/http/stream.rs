//! A session as the body of an answer.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    response::Response,
};
use futures_util::{Stream, stream::unfold};
use http::{HeaderValue, header};
use http_body::Frame;
use tokio::time::{Instant, sleep_until};

use crate::{frame::Form, session::Session};

/// The head goes out at once; the body ends when the session does, and with it its chunks.
pub(super) fn respond(session: Session, form: Form) -> Response {
    let mut response = Response::new(Body::new(Frames(Arc::new(Sending::new(session, form)))));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(form.content_type()),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies must not wait for more.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Frames(Arc<Sending>);

/// Frames on their way. A connection that can take no more asks for none: whether the one before
/// was read at all is looked at from outside.
struct Sending {
    state: Mutex<State>,
    slow_reader: Duration,
    is_slow: Arc<AtomicBool>,
}

struct State {
    /// `None` when it has ended.
    frames: Option<Pin<Box<dyn Stream<Item = Bytes> + Send>>>,
    /// Since when a frame lies there and no other is asked for.
    unread: Option<Instant>,
    is_watched: bool,
}

impl Sending {
    fn new(session: Session, form: Form) -> Self {
        let (slow_reader, is_slow) = (session.slow_reader(), session.is_slow());
        let frames = unfold(session, move |mut session| async move {
            let event = session.next().await?;
            Some((form.encode(&event), session))
        });
        Self {
            state: Mutex::new(State {
                frames: Some(Box::pin(frames)),
                unread: None,
                is_watched: false,
            }),
            slow_reader,
            is_slow,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.state();
        let Some(frames) = &mut state.frames else {
            return Poll::Ready(None);
        };
        let polled = frames.as_mut().poll_next(context);
        match &polled {
            Poll::Pending => state.unread = None,
            Poll::Ready(None) => state.frames = None,
            Poll::Ready(Some(_)) => {
                state.unread = Some(Instant::now());
                if !std::mem::replace(&mut state.is_watched, true) {
                    tokio::spawn(watch(Arc::downgrade(self), self.slow_reader));
                }
            }
        }
        polled
    }

    /// Ends it if its reader is too slow; else says when to look again, if at all.
    fn look(&self) -> Option<Instant> {
        let mut state = self.state();
        let due = state.unread.map(|since| since + self.slow_reader);
        match due {
            Some(due) if due <= Instant::now() => {
                self.is_slow.store(true, Ordering::Relaxed);
                state.frames = None;
                None
            }
            Some(due) => Some(due),
            None => {
                state.is_watched = false;
                None
            }
        }
    }
}

/// There only while there is something to read.
async fn watch(sending: Weak<Sending>, slow_reader: Duration) {
    let mut at = Instant::now() + slow_reader;
    loop {
        sleep_until(at).await;
        match sending.upgrade().and_then(|sending| sending.look()) {
            Some(next) => at = next,
            None => return,
        }
    }
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = self.0.poll(context);
        polled.map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
    }
}
