//! The first bytes of a connection, which decide its protocol.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    time::timeout,
};

/// The first bytes of an HTTP/2 connection. The whole of it is awaited here, because hyper has no
/// time limit for it.
const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// For the rest of a preface that has begun: a client sends it in one piece.
const PREFACE_TIME: Duration = Duration::from_secs(5);

/// A connection whose first bytes were read to see its protocol, and are read again by it.
#[derive(Debug)]
pub(super) struct Rewound<T> {
    inner: T,
    first: [u8; HTTP2_PREFACE.len()],
    /// What is left of them. Small numbers, because every held connection has them.
    from: u8,
    to: u8,
}

/// Reads until it is known whether the client speaks HTTP/2. `patience` is for the first byte. An
/// error is a client that hung up or was too slow.
pub(super) async fn protocol<T: AsyncRead + Unpin>(
    mut inner: T,
    patience: Duration,
) -> io::Result<(Rewound<T>, bool)> {
    let mut first = [0; HTTP2_PREFACE.len()];
    let mut read = 0;
    let mut limit = patience;
    let is_http2 = loop {
        let more = timeout(limit, inner.read(&mut first[read..])).await??;
        if more == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if read == 0 {
            limit = patience.min(PREFACE_TIME);
        }
        read += more;
        if !HTTP2_PREFACE.starts_with(&first[..read]) {
            break false;
        }
        if read == first.len() {
            break true;
        }
    };
    let to = u8::try_from(read).expect("the preface is short");
    let rewound = Rewound {
        inner,
        first,
        from: 0,
        to,
    };
    Ok((rewound, is_http2))
}

impl<T: AsyncRead + Unpin> AsyncRead for Rewound<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        read: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.from == this.to {
            return Pin::new(&mut this.inner).poll_read(context, read);
        }
        let left = &this.first[usize::from(this.from)..usize::from(this.to)];
        let length = left.len().min(read.remaining());
        read.put_slice(&left[..length]);
        this.from += u8::try_from(length).expect("no longer than the preface");
        // The rest of the head comes with them. hyper doubles its buffer for a second read, and a
        // held request keeps that buffer.
        if read.remaining() > 0
            && let Poll::Ready(Err(error)) = Pin::new(&mut this.inner).poll_read(context, read)
        {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewound<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, bytes)
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
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3_600);

    async fn protocol_of(chunks: &[&[u8]]) -> (bool, Vec<u8>) {
        let (near, mut far) = duplex(3);
        let whole = chunks.concat();
        let sending = async {
            far.write_all(&whole).await.unwrap();
            drop(far);
        };
        let reading = async {
            let (mut near, is_http2) = protocol(near, PATIENCE).await.unwrap();
            let mut read = Vec::new();
            near.read_to_end(&mut read).await.unwrap();
            (is_http2, read)
        };
        tokio::join!(sending, reading).1
    }

    #[tokio::test]
    async fn the_first_bytes_are_read_again_by_the_protocol() {
        let (is_http2, read) = protocol_of(&[HTTP2_PREFACE, b"frames"]).await;
        assert!(is_http2);
        assert_eq!(read, [&HTTP2_PREFACE[..], b"frames"].concat());
        // It begins as a preface does.
        for head in [&b"PRI /x HTTP/1.1\r\n"[..], b"GET / HTTP/1.1\r\n\r\n", b"P"] {
            let (near, mut far) = duplex(64);
            far.write_all(head).await.unwrap();
            drop(far);
            match protocol(near, PATIENCE).await {
                Ok((mut near, is_http2)) => {
                    let mut read = Vec::new();
                    near.read_to_end(&mut read).await.unwrap();
                    assert!(!is_http2);
                    assert_eq!(read, head);
                }
                Err(error) => {
                    assert_eq!(
                        (head, error.kind()),
                        (&b"P"[..], io::ErrorKind::UnexpectedEof)
                    );
                }
            }
        }
    }

    #[tokio::test]
    async fn the_first_read_brings_what_came_with_the_first_bytes() {
        let (near, mut far) = duplex(64);
        let head = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        far.write_all(head).await.unwrap();
        let (mut near, _) = protocol(near, PATIENCE).await.unwrap();
        let mut read = [0; 64];
        assert_eq!(near.read(&mut read).await.unwrap(), head.len());
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_within_the_preface_is_noticed_at_once() {
        for sent in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
            let (near, mut far) = duplex(64);
            far.write_all(sent).await.unwrap();
            drop(far);
            let error = protocol(near, PATIENCE).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[tokio::test]
    async fn a_client_that_pauses_is_given_up() {
        for sent in [&b""[..], b"PRI *"] {
            let (near, mut far) = duplex(64);
            far.write_all(sent).await.unwrap();
            let error = protocol(near, Duration::from_millis(20)).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
    }
}
