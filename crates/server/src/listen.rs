//! Connections: HTTP/1.1 and cleartext HTTP/2 on one port, light enough to be held by the
//! hundred thousand.
//!
//! A held HTTP/1.1 request is one of these tasks, so their size is what a waiter costs. hyper-util's
//! automatic builder keeps room for both protocols in each of them; looking at the first bytes here
//! and then running just the one that is spoken keeps a third of it.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use axum::{Router, body::Body, response::Response};
use http::Request;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

use crate::{config::Http, requests::Gate, stopping::Stopping};

/// How an HTTP/2 connection begins. No HTTP/1.1 method we know starts like this.
const HTTP2_BEGINS: &[u8] = b"PRI * ";
/// Between two looks at a connection that has sent only the beginning of a beginning.
const PEEK_PAUSE: Duration = Duration::from_millis(5);
/// After running out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const HTTP2_KEEP_ALIVE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Listening {
    listener: TcpListener,
    shared: Arc<PerConnection>,
    max_connections: usize,
}

#[derive(Debug)]
struct PerConnection {
    router: Router,
    gate: Gate,
    http: Http,
}

/// What is left when nothing new is accepted any more.
#[derive(Debug)]
pub(crate) struct Connections {
    room: Arc<Semaphore>,
    max: u32,
}

impl Listening {
    pub(crate) fn new(listener: TcpListener, router: Router, gate: Gate, http: &Http) -> Self {
        let shared = Arc::new(PerConnection {
            router,
            gate,
            http: http.clone(),
        });
        Self {
            listener,
            shared,
            max_connections: http.max_connections,
        }
    }

    pub(crate) async fn accept_until(self, mut stopping: Stopping) -> Connections {
        let max =
            u32::try_from(self.max_connections.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let room = Arc::new(Semaphore::new(max as usize));
        loop {
            // Past the limit the next one waits in the system's line.
            let accepting = async {
                let permit = room.clone().acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let accepted = tokio::select! {
                accepted = accepting => accepted,
                () = stopping.told() => return Connections { room, max },
            };
            match accepted {
                (Ok(permit), Ok((stream, _))) => {
                    let serving = serve(self.shared.clone(), stream, stopping.clone(), permit);
                    tokio::spawn(serving);
                }
                (_, Err(error)) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
                (Err(_), _) => unreachable!("the semaphore is never closed"),
            }
        }
    }
}

impl Connections {
    /// Waits until the last one has ended, at most `drain`.
    pub(crate) async fn finish(self, drain: Duration) {
        if timeout(drain, self.room.acquire_many(self.max))
            .await
            .is_err()
        {
            let left = self.max as usize - self.room.available_permits();
            tracing::warn!(
                left,
                "connections were cut at the end of the drain time (http.drain)"
            );
        }
    }
}

async fn serve(
    shared: Arc<PerConnection>,
    stream: TcpStream,
    stopping: Stopping,
    permit: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    // It may have hung up, or say nothing in time.
    let Ok(Ok(speaks_http2)) = timeout(shared.http.header_timeout, begins_http2(&stream)).await
    else {
        return;
    };
    // Each in a task of its own size: this one is as large as the larger of its branches.
    if speaks_http2 {
        tokio::spawn(serve_http2(shared, stream, stopping, permit));
    } else {
        tokio::spawn(serve_http1(shared, stream, stopping, permit));
    }
}

async fn begins_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; HTTP2_BEGINS.len()];
    loop {
        let seen = stream.peek(&mut first).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !HTTP2_BEGINS.starts_with(&first[..seen]) {
            return Ok(false);
        }
        if seen == first.len() {
            return Ok(true);
        }
        sleep(PEEK_PAUSE).await;
    }
}

async fn serve_http1(
    shared: Arc<PerConnection>,
    stream: TcpStream,
    mut stopping: Stopping,
    _permit: OwnedSemaphorePermit,
) {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(shared.http.header_timeout)
        .max_buf_size(shared.http.max_headers);
    let service = service_fn(move |request| answer(shared.clone(), request));
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // An error here is a client that went away or does not speak HTTP: nobody to tell.
        _ = connection.as_mut() => return,
        () = stopping.told() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn serve_http2(
    shared: Arc<PerConnection>,
    stream: TcpStream,
    mut stopping: Stopping,
    _permit: OwnedSemaphorePermit,
) {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_KEEP_ALIVE)
        .max_concurrent_streams(shared.http.http2_max_streams)
        .max_header_list_size(u32::try_from(shared.http.max_headers).unwrap_or(u32::MAX));
    let service = service_fn(move |request| answer(shared.clone(), request));
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stopping.told() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn answer(
    shared: Arc<PerConnection>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let request = request.map(Body::new);
    Ok(shared.gate.pass(request, &shared.router).await)
}
