//! Connections: HTTP/1.1 and cleartext HTTP/2 on one port, light enough to be held by the
//! hundred thousand.
//!
//! A held HTTP/1.1 request is one of these tasks, so their size is what a waiter costs. hyper-util's
//! automatic builder keeps room for both protocols in each of them; looking at the first bytes here
//! and then running just the one that is spoken keeps room for that one only.

mod stall;

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

use self::stall::Stalling;
use crate::{config::Http, requests::Gate, stopping::Stopping};

/// How an HTTP/2 connection begins. The whole of it is waited for here: hyper has no limit on how
/// long a client may take to send it.
const HTTP2_BEGINS: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Between two looks at a connection that has sent only the beginning of a beginning.
const PEEK_PAUSE: Duration = Duration::from_millis(5);
/// After running out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const HTTP2_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Connections taken at once while the others come to their end.
const MAX_LATE: u32 = 256;

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

/// What is left when the server is told to stop.
#[derive(Debug)]
pub(crate) struct Connections {
    listening: Listening,
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
                () = stopping.told() => return Connections { listening: self, room, max },
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
    /// Waits until the last one has ended, at most `drain`. Meanwhile new ones are taken, one
    /// request each: whoever asks `/readyz` hears that this node stops, and nobody who comes too
    /// late for that finds a closed door while there is still somebody to answer.
    pub(crate) async fn finish(self, drain: Duration) {
        let late = Arc::new(Semaphore::new(MAX_LATE as usize));
        let finishing = async {
            tokio::select! {
                _ = self.room.acquire_many(self.max) => {}
                () = self.listening.accept_late(&late) => {}
            }
            // Who got in late has its answer coming.
            let _ = late.acquire_many(MAX_LATE).await;
        };
        if timeout(drain, finishing).await.is_err() {
            let left = self.max as usize - self.room.available_permits();
            let left = left + (MAX_LATE as usize - late.available_permits());
            tracing::warn!(
                left,
                "connections were cut at the end of the drain time (http.drain)"
            );
        }
    }
}

impl Listening {
    async fn accept_late(&self, late: &Arc<Semaphore>) {
        let room = Arc::new(Semaphore::new(MAX_LATE as usize));
        loop {
            let Ok(place) = room.clone().acquire_owned().await else {
                unreachable!("the semaphore is never closed")
            };
            let Ok((stream, _)) = self.listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (shared, late) = (self.shared.clone(), late.clone());
            tokio::spawn(async move {
                let patience = shared.http.header_timeout;
                let Ok(Ok(speaks_http2)) = timeout(patience, begins_http2(&stream)).await else {
                    return;
                };
                // Counted only now: one that says nothing must not hold up the end.
                if let Ok(permit) = late.try_acquire_owned() {
                    serve_late(shared, stream, speaks_http2).await;
                    drop(permit);
                }
                drop(place);
            });
        }
    }
}

async fn serve(
    shared: Arc<PerConnection>,
    stream: TcpStream,
    mut stopping: Stopping,
    permit: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let beginning = timeout(shared.http.header_timeout, begins_http2(&stream));
    let begun = tokio::select! {
        biased;
        begun = beginning => begun,
        // It has asked for nothing yet.
        () = stopping.told() => return,
    };
    // It may have hung up, or say nothing in time.
    let Ok(Ok(speaks_http2)) = begun else { return };
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
    let builder = http1_builder(&shared.http);
    let stream = io_of(stream, &shared.http);
    let service = service_fn(move |request| answer(shared.clone(), request));
    let connection = builder.serve_connection(stream, service);
    // One that becomes a WebSocket ends here, and with it its place among the connections: it is
    // its door's from then on, which has its own limit and ends it when the server stops.
    let mut connection = std::pin::pin!(connection.with_upgrades());
    tokio::select! {
        // First: a request that has arrived is begun before the connection is told to end.
        biased;
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
    let builder = http2_builder(&shared.http);
    let stream = io_of(stream, &shared.http);
    let service = service_fn(move |request| answer(shared.clone(), request));
    let mut connection = std::pin::pin!(builder.serve_connection(stream, service));
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = stopping.told() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// One request over HTTP/1.1; over HTTP/2 those that come with the first.
async fn serve_late(shared: Arc<PerConnection>, stream: TcpStream, speaks_http2: bool) {
    let _ = stream.set_nodelay(true);
    let stream = io_of(stream, &shared.http);
    let (mut http1, http2) = (http1_builder(&shared.http), http2_builder(&shared.http));
    let service = service_fn(move |request| answer(shared.clone(), request));
    if speaks_http2 {
        let mut connection = std::pin::pin!(http2.serve_connection(stream, service));
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    } else {
        let _ = http1
            .keep_alive(false)
            .serve_connection(stream, service)
            .await;
    }
}

fn io_of(stream: TcpStream, http: &Http) -> TokioIo<Stalling<TcpStream>> {
    TokioIo::new(Stalling::new(stream, http.write_timeout))
}

fn http1_builder(http: &Http) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(http.header_timeout)
        .max_buf_size(http.max_headers);
    builder
}

fn http2_builder(http: &Http) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_KEEP_ALIVE)
        .max_concurrent_streams(http.http2_max_streams)
        .max_header_list_size(u32::try_from(http.max_headers).unwrap_or(u32::MAX));
    builder
}

async fn answer(
    shared: Arc<PerConnection>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let request = request.map(Body::new);
    Ok(shared.gate.pass(request, &shared.router).await)
}
