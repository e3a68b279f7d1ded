//! A WebSocket's connection: it can be cut, and ends when the client stops reading.
//!
//! Without that a client that does not read keeps its rooms for as long as its connection stands:
//! the heartbeat's end waits for the write under way.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Timeout, timeout},
};
use tokio_util::{sync::WaitForCancellationFutureOwned, task::task_tracker::TaskTrackerToken};

use super::session::Session;

pub(super) struct Wire<S> {
    stream: S,
    session: Arc<Session>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    patience: Duration,
    /// While a write waits for the client.
    stalled: Option<Pin<Box<Timeout<WaitForCancellationFutureOwned>>>>,
    _counted: TaskTrackerToken,
}

impl<S> Wire<S> {
    pub(super) fn new(stream: S, session: Arc<Session>, patience: Duration) -> Self {
        Self {
            stream,
            cut: Box::pin(session.cutting().clone().cancelled_owned()),
            patience,
            stalled: None,
            _counted: session.count_wire(),
            session,
        }
    }

    fn unless_stalled<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let (session, patience) = (&self.session, self.patience);
        let stalled = self.stalled.get_or_insert_with(|| {
            Box::pin(timeout(
                patience,
                session.cutting().clone().cancelled_owned(),
            ))
        });
        let ended = ready!(stalled.as_mut().poll(context));
        if ended.is_err() && self.session.cut() {
            tracing::info!("a client did not read and was cut");
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S> Drop for Wire<S> {
    fn drop(&mut self) {
        self.session.cut();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.cut.as_mut().poll(context).is_ready() {
            // Nothing was read: the end of the connection.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.session.is_cut() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.unless_stalled(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.unless_stalled(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(context);
        this.unless_stalled(context, shut)
    }
}
