//! A connection whose other side does not read.

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

/// Ends a connection on which a write has made no progress for so long: a client that never reads
/// would keep its place for ever. One on which nothing is to be written is not touched, so a held
/// request may be held.
#[derive(Debug)]
pub(super) struct Stalling<T> {
    inner: T,
    limit: Duration,
    /// There only while a write waits: most connections are held and write nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<T> Stalling<T> {
    pub(super) fn new(inner: T, limit: Duration) -> Self {
        Self {
            inner,
            limit,
            stalled: None,
        }
    }

    fn judge<R>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        let is_over = stalled.as_mut().poll(context);
        is_over.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Stalling<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        read: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, read)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Stalling<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
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
    async fn one_that_reads_nothing_is_given_up() {
        let (near, _far) = duplex(16);
        let mut near = Stalling::new(near, Duration::from_millis(20));
        let written = near.write_all(&[0; 100]).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    /// The time counts from the last progress.
    #[tokio::test]
    async fn one_that_reads_slowly_goes_on() {
        let (near, mut far) = duplex(16);
        let mut near = Stalling::new(near, Duration::from_secs(3_600));
        for _ in 0..3 {
            let mut writing = Box::pin(near.write_all(&[0; 32]));
            assert!(futures_util::poll!(&mut writing).is_pending());
            far.read_exact(&mut [0; 16]).await.unwrap();
            writing.await.unwrap();
            assert!(near.stalled.is_none());
            far.read_exact(&mut [0; 16]).await.unwrap();
        }
    }

    #[tokio::test]
    async fn one_that_is_written_nothing_to_is_left_alone() {
        let (near, mut far) = duplex(16);
        let limit = Duration::from_millis(1);
        let mut near = Stalling::new(near, limit);
        near.write_all(b"head").await.unwrap();
        sleep(limit * 20).await;
        near.write_all(b"body").await.unwrap();
        let mut read = [0; 8];
        far.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"headbody");
    }
}
