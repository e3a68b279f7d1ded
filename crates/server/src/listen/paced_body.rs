//! The least rate of a request body.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};

/// A body that ends with an error when the client has kept the server waiting for too long in all:
/// twice the longest pause, and a second for each `rate` bytes that have come. The limit of one pause,
/// which its readers know, would let a client send a byte now and then for ever.
#[derive(Debug)]
pub(super) struct PacedBody<B> {
    inner: B,
    pause: Duration,
    rate: usize,
    received: u64,
    /// How long the client was waited for, before the present wait.
    waited: Duration,
    wait: Option<(Instant, Pin<Box<Sleep>>)>,
}

/// Most requests have no body, and need no room for its pace while they are held.
pub(super) fn paced(body: Incoming, pause: Duration, rate: usize) -> Body {
    if body.is_end_stream() {
        return Body::new(body);
    }
    Body::new(PacedBody::new(body, pause, rate))
}

impl<B> PacedBody<B> {
    fn new(inner: B, pause: Duration, rate: usize) -> Self {
        Self {
            inner,
            pause,
            rate,
            received: 0,
            waited: Duration::ZERO,
            wait: None,
        }
    }

    fn patience(&self) -> Duration {
        let earned = Duration::from_secs_f64(self.received as f64 / self.rate as f64);
        (self.pause * 2 + earned).saturating_sub(self.waited)
    }
}

impl<B> http_body::Body for PacedBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.inner).poll_frame(context) {
            Poll::Ready(frame) => {
                if let Some((since, _)) = this.wait.take() {
                    this.waited += since.elapsed();
                }
                if let Some(Ok(data)) = frame
                    .as_ref()
                    .map(|frame| frame.as_ref().map(Frame::data_ref))
                {
                    this.received += data.map_or(0, |data| data.len() as u64);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => {
                let patience = this.patience();
                let (_, timer) = this
                    .wait
                    .get_or_insert_with(|| (Instant::now(), Box::pin(sleep(patience))));
                timer.as_mut().poll(context).map(|()| {
                    let text = format!(
                        "it came at less than {} bytes a second (http.body_rate); try again",
                        this.rate
                    );
                    Some(Err(io::Error::new(io::ErrorKind::TimedOut, text).into()))
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures_util::stream;
    use http_body_util::BodyExt;

    use super::*;

    /// A body of so many chunks of 10 bytes, each after a pause.
    fn body(chunks: usize, pause: Duration) -> Body {
        let chunks = stream::unfold(chunks, move |left| async move {
            let left = left.checked_sub(1)?;
            sleep(pause).await;
            Some((Ok::<_, io::Error>(Bytes::from_static(&[0; 10])), left))
        });
        Body::from_stream(chunks)
    }

    #[tokio::test]
    async fn a_body_that_trickles_is_given_up() {
        let body = body(1_000, Duration::from_millis(10));
        let paced = PacedBody::new(body, Duration::from_millis(50), 100_000);
        let error = paced.collect().await.unwrap_err().to_string();
        assert!(error.contains("http.body_rate"), "{error}");
    }

    #[tokio::test]
    async fn a_body_that_keeps_its_rate_goes_on() {
        let body = body(20, Duration::from_millis(10));
        let paced = PacedBody::new(body, Duration::from_secs(3_600), 1);
        assert_eq!(paced.collect().await.unwrap().to_bytes().len(), 200);
    }

    /// The server's own time does not count.
    #[tokio::test]
    async fn a_reader_that_pauses_is_not_the_clients_fault() {
        let mut paced = PacedBody::new(
            body(2, Duration::ZERO),
            Duration::from_millis(20),
            1_000_000,
        );
        paced.frame().await.unwrap().unwrap();
        sleep(Duration::from_millis(60)).await;
        paced.frame().await.unwrap().unwrap();
        assert!(paced.frame().await.is_none());
    }
}
