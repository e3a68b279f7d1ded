//! Connections: HTTP/1.1 and cleartext HTTP/2 on one port, with as little memory each as possible.
//!
//! A held HTTP/1.1 request is one of these tasks, so their size decides what a waiter costs.
//! hyper-util's automatic builder keeps room for both protocols in each task. Here the first bytes
//! decide, and the task has room for one protocol only.

mod write_timeout;

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

use self::write_timeout::WriteTimeout;
use crate::{config::Http, requests::Gate, stopping::StopSignal};

/// The first bytes of an HTTP/2 connection. The whole of it is awaited here, because hyper has no
/// time limit for it.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Between two reads of a connection that has sent a part of the preface.
const PEEK_PAUSE: Duration = Duration::from_millis(5);
/// After running out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const HTTP2_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// New connections at once during the drain.
const MAX_LATE: u32 = 256;

#[derive(Debug)]
pub(crate) struct Listener {
    tcp: TcpListener,
    shared: Arc<ConnectionContext>,
    max_connections: usize,
}

#[derive(Debug)]
struct ConnectionContext {
    router: Router,
    gate: Gate,
    http: Http,
}

/// The connections that are open when the server begins to stop.
#[derive(Debug)]
pub(crate) struct Connections {
    listener: Listener,
    room: Arc<Semaphore>,
    max: u32,
}

impl Listener {
    pub(crate) fn new(tcp: TcpListener, router: Router, gate: Gate, http: &Http) -> Self {
        let shared = Arc::new(ConnectionContext {
            router,
            gate,
            http: http.clone(),
        });
        Self {
            tcp,
            shared,
            max_connections: http.max_connections,
        }
    }

    pub(crate) async fn accept_until(self, mut stopping: StopSignal) -> Connections {
        let max =
            u32::try_from(self.max_connections.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let room = Arc::new(Semaphore::new(max as usize));
        loop {
            // Past the limit the next connection waits in the system's backlog.
            let accepting = async {
                let permit = room.clone().acquire_owned().await;
                (permit, self.tcp.accept().await)
            };
            let accepted = tokio::select! {
                accepted = accepting => accepted,
                () = stopping.received() => return Connections { listener: self, room, max },
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
    /// Waits until the last connection has ended, at most `drain`. Meanwhile each new connection gets
    /// one request: a load balancer can ask `/readyz`, and clients that come late get an answer.
    pub(crate) async fn finish(self, drain: Duration) {
        let late = Arc::new(Semaphore::new(MAX_LATE as usize));
        let finishing = async {
            tokio::select! {
                _ = self.room.acquire_many(self.max) => {}
                () = self.listener.accept_late(&late) => {}
            }
            // Late connections get their answer.
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

impl Listener {
    async fn accept_late(&self, late: &Arc<Semaphore>) {
        let room = Arc::new(Semaphore::new(MAX_LATE as usize));
        loop {
            let Ok(place_permit) = room.clone().acquire_owned().await else {
                unreachable!("the semaphore is never closed")
            };
            let Ok((stream, _)) = self.tcp.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (shared, late) = (self.shared.clone(), late.clone());
            tokio::spawn(async move {
                let patience = shared.http.header_timeout;
                let Ok(Ok(is_http2)) = timeout(patience, has_http2_preface(&stream)).await else {
                    return;
                };
                // Counted only now: a silent connection must not delay the end.
                if let Ok(permit) = late.try_acquire_owned() {
                    serve_late(shared, stream, is_http2).await;
                    drop(permit);
                }
                drop(place_permit);
            });
        }
    }
}

async fn serve(
    shared: Arc<ConnectionContext>,
    stream: TcpStream,
    mut stopping: StopSignal,
    permit: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    let beginning = timeout(shared.http.header_timeout, has_http2_preface(&stream));
    let begun = tokio::select! {
        biased;
        begun = beginning => begun,
        // It has sent no request yet.
        () = stopping.received() => return,
    };
    // The client may have hung up, or sent nothing in time.
    let Ok(Ok(is_http2)) = begun else { return };
    // Each in a task of its own size: this one is as large as the larger of its branches.
    if is_http2 {
        tokio::spawn(serve_http2(shared, stream, stopping, permit));
    } else {
        tokio::spawn(serve_http1(shared, stream, stopping, permit));
    }
}

async fn has_http2_preface(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; HTTP2_PREFACE.len()];
    loop {
        let seen = stream.peek(&mut first).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !HTTP2_PREFACE.starts_with(&first[..seen]) {
            return Ok(false);
        }
        if seen == first.len() {
            return Ok(true);
        }
        sleep(PEEK_PAUSE).await;
    }
}

async fn serve_http1(
    shared: Arc<ConnectionContext>,
    stream: TcpStream,
    mut stopping: StopSignal,
    _permit: OwnedSemaphorePermit,
) {
    let builder = http1_builder(&shared.http);
    let stream = io_of(stream, &shared.http);
    let service = service_fn(move |request| answer(shared.clone(), request));
    let connection = builder.serve_connection(stream, service);
    // A connection that becomes a WebSocket ends here and is no longer counted: its door has a limit
    // of its own and ends it when the server stops.
    let mut connection = std::pin::pin!(connection.with_upgrades());
    tokio::select! {
        // First, so that a request that has arrived begins before the connection shuts down.
        biased;
        // An error here is a client that hung up or does not speak HTTP.
        _ = connection.as_mut() => return,
        () = stopping.received() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

async fn serve_http2(
    shared: Arc<ConnectionContext>,
    stream: TcpStream,
    mut stopping: StopSignal,
    _permit: OwnedSemaphorePermit,
) {
    let builder = http2_builder(&shared.http);
    let stream = io_of(stream, &shared.http);
    let service = service_fn(move |request| answer(shared.clone(), request));
    let mut connection = std::pin::pin!(builder.serve_connection(stream, service));
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = stopping.received() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// One request over HTTP/1.1; over HTTP/2 those that come together with the first.
async fn serve_late(shared: Arc<ConnectionContext>, stream: TcpStream, is_http2: bool) {
    let _ = stream.set_nodelay(true);
    let stream = io_of(stream, &shared.http);
    let (mut http1, http2) = (http1_builder(&shared.http), http2_builder(&shared.http));
    let service = service_fn(move |request| answer(shared.clone(), request));
    if is_http2 {
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

fn io_of(stream: TcpStream, http: &Http) -> TokioIo<WriteTimeout<TcpStream>> {
    TokioIo::new(WriteTimeout::new(stream, http.write_timeout))
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
    shared: Arc<ConnectionContext>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let request = request.map(Body::new);
    Ok(shared.gate.pass(request, &shared.router).await)
}
