//! A stream as the body of an answer.

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

use super::answer;
use crate::{frame::StreamFormat, stream::FeedStream};

/// The head goes out at once; the body ends, with its last chunk, when the stream does.
pub(super) fn respond(stream: FeedStream, form: StreamFormat) -> Response {
    let body = StreamBody(Arc::new(FrameSender::new(stream, form)));
    let mut response = answer::typed(form.content_type(), Body::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies must not wait for more.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct StreamBody(Arc<FrameSender>);

/// Sends frames. A connection that can take no more asks for none, so a task checks whether the
/// last frame was read in time.
struct FrameSender {
    state: Mutex<SenderState>,
    slow_reader: Duration,
    is_slow: Arc<AtomicBool>,
}

struct SenderState {
    /// `None` when it has ended.
    frames: Option<Pin<Box<dyn Stream<Item = Bytes> + Send>>>,
    /// Since when a frame has not been read.
    unread: Option<Instant>,
    is_watched: bool,
}

impl FrameSender {
    fn new(stream: FeedStream, form: StreamFormat) -> Self {
        let (slow_reader, is_slow) = (stream.slow_reader(), stream.is_slow());
        let frames = unfold(stream, move |mut stream| async move {
            let event = stream.next().await?;
            Some((form.encode(&event), stream))
        });
        Self {
            state: Mutex::new(SenderState {
                frames: Some(Box::pin(frames)),
                unread: None,
                is_watched: false,
            }),
            slow_reader,
            is_slow,
        }
    }

    fn state(&self) -> MutexGuard<'_, SenderState> {
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

    /// Ends the stream if its reader is too slow; else returns when to check again, if at all.
    fn end_if_unread(&self) -> Option<Instant> {
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

/// Runs only while a frame is unread.
async fn watch(sending: Weak<FrameSender>, slow_reader: Duration) {
    let mut at = Instant::now() + slow_reader;
    loop {
        sleep_until(at).await;
        match sending
            .upgrade()
            .and_then(|sending| sending.end_if_unread())
        {
            Some(next) => at = next,
            None => return,
        }
    }
}

impl http_body::Body for StreamBody {
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
