//! The writing side of a connection: the time limit for a client that does not read, and which answers
//! its socket has accepted.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};
use wakeline_web::UnsentAnswers;

use super::Seat;

/// Ends a connection when a write makes no progress for `limit`. A connection with nothing to write
/// has no limit, so that its request can be held.
#[derive(Debug)]
pub(super) struct WriteTimeout<T> {
    inner: T,
    limit: Duration,
    /// Exists only while a write waits: most connections are held and write nothing.
    timer: Option<Pin<Box<Sleep>>>,
    unsent: UnsentAnswers,
    /// Here, because this exists as long as the connection is open, whatever it has become.
    _seat: Option<Seat>,
}

impl<T> WriteTimeout<T> {
    pub(super) fn new(
        inner: T,
        limit: Duration,
        unsent: UnsentAnswers,
        seat: Option<Seat>,
    ) -> Self {
        Self {
            inner,
            limit,
            timer: None,
            unsent,
            _seat: seat,
        }
    }

    fn check_progress<R>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        let is_over = timer.as_mut().poll(context);
        is_over.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeout<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        read: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, read)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.check_progress(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.check_progress(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        // hyper flushes when it has written all that it has.
        if let Poll::Ready(Ok(())) = flushed {
            self.unsent.sent();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_cut() {
        let (near, _far) = duplex(16);
        let mut near = WriteTimeout::new(
            near,
            Duration::from_millis(20),
            UnsentAnswers::default(),
            None,
        );
        let written = near.write_all(&[0; 100]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// The time counts from the last progress.
    #[tokio::test]
    async fn a_client_that_reads_slowly_goes_on() {
        let (near, mut far) = duplex(16);
        let mut near = WriteTimeout::new(
            near,
            Duration::from_secs(3_600),
            UnsentAnswers::default(),
            None,
        );
        for _ in 0..3 {
            let mut writing = Box::pin(near.write_all(&[0; 32]));
            assert!(futures_util::poll!(&mut writing).is_pending());
            far.read_exact(&mut [0; 16]).await.unwrap();
            writing.await.unwrap();
            assert!(near.timer.is_none());
            far.read_exact(&mut [0; 16]).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_connection_with_nothing_to_write_has_no_limit() {
        let (near, mut far) = duplex(16);
        let limit = Duration::from_millis(1);
        let mut near = WriteTimeout::new(near, limit, UnsentAnswers::default(), None);
        near.write_all(b"head").await.unwrap();
        sleep(limit * 20).await;
        near.write_all(b"body").await.unwrap();
        let mut read = [0; 8];
        far.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"headbody");
    }
}
