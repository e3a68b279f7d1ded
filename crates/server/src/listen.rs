//! Connections: HTTP/1.1 and cleartext HTTP/2 on one port, with as little memory each as possible.
//!
//! A held HTTP/1.1 request is one of these tasks, so their size decides what a waiter costs.
//! hyper-util's automatic builder keeps room for both protocols in each task. Here the first bytes
//! decide, and the task has room for one protocol only.

mod first_bytes;
pub(crate) mod in_memory;
mod paced_body;
mod sockets;
mod write_timeout;

use std::{convert::Infallible, net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
};
use http::Request;
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

use wakeline_web::{ClientAddress, Problem, UnsentAnswers};

pub(crate) use self::sockets::ListenSockets;
use self::{
    first_bytes::{Rewound, protocol},
    paced_body::paced,
    write_timeout::WriteTimeout,
};
use crate::{
    auth::Auth,
    callers::{CallerCounts, CallerShare},
    config::{Config, Http},
    descriptors,
    requests::Gate,
    stopping::StopSignal,
};

/// After an error such as no file descriptors, of which other parts of the process may use up all.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const HTTP2_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Of a stream, between its body and the socket: what an answer may have unsent when it counts as
/// delivered.
const HTTP2_SEND_BUFFER: usize = 64 << 10;
/// For the first bytes of a connection that was made when the server began to stop.
const BEGUN_TIME: Duration = Duration::from_millis(100);
/// New connections at once during the drain.
const MAX_LATE: u32 = 256;
/// Connections past `http.max_connections`: a supervisor gets its answer, every other caller a 503.
const RESERVE: usize = 32;
/// For a connection of the reserve: for its head, and in all.
const RESERVE_HEAD: Duration = Duration::from_secs(1);
const RESERVE_TIME: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Listener {
    sockets: ListenSockets,
    shared: Arc<ConnectionContext>,
    max_connections: usize,
}

#[derive(Debug)]
struct ConnectionContext {
    router: Router,
    gate: Gate,
    http: Http,
    per_address: Arc<CallerCounts>,
}

/// What a connection counts for while it is open, also as a WebSocket.
#[derive(Debug)]
struct Seat {
    _permit: OwnedSemaphorePermit,
    _share: Option<CallerShare>,
}

/// A connection whose protocol is known.
#[derive(Debug)]
struct Client<S = TcpStream> {
    stream: Rewound<S>,
    is_http2: bool,
    address: IpAddr,
}

/// The connections that are open when the server begins to stop.
#[derive(Debug)]
pub(crate) struct Connections {
    listener: Listener,
    room: Arc<Semaphore>,
    max: u32,
}

impl Listener {
    pub(crate) fn new(sockets: ListenSockets, router: Router, gate: Gate, config: &Config) -> Self {
        let http = &config.http;
        let most = config.limits.connections_per_address;
        let shared = Arc::new(ConnectionContext {
            router,
            gate,
            http: http.clone(),
            per_address: CallerCounts::new(most, most),
        });
        Self {
            sockets,
            shared,
            max_connections: descriptors::connection_limit(config, RESERVE),
        }
    }

    pub(crate) async fn accept_until(self, mut stopping: StopSignal) -> Connections {
        let max =
            u32::try_from(self.max_connections.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let room = Arc::new(Semaphore::new(max as usize));
        let reserve = Arc::new(Semaphore::new(RESERVE));
        loop {
            // Past the limit and the reserve the next connection waits in the system's backlog.
            let accepting = async {
                let permit = reserve.clone().acquire_owned().await;
                (permit, self.sockets.accept().await)
            };
            let accepted = tokio::select! {
                accepted = accepting => accepted,
                () = stopping.received() => return Connections { listener: self, room, max },
            };
            match accepted {
                (Ok(reserved), Ok((stream, address))) => {
                    let shared = self.shared.clone();
                    let address = address.ip().to_canonical();
                    match shared.seat(&room, address) {
                        Ok(seat) => {
                            let patience = shared.http.header_timeout;
                            let client = Client::accept(stream, address, patience);
                            tokio::spawn(serve(shared, client, stopping.clone(), seat));
                        }
                        Err(refusal) => {
                            let client = Client::accept(stream, address, RESERVE_HEAD);
                            tokio::spawn(serve_reserved(shared, client, refusal, reserved));
                        }
                    }
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

impl ConnectionContext {
    /// A new connection's seat; why it has none.
    fn seat(&self, room: &Arc<Semaphore>, address: IpAddr) -> Result<Seat, &'static str> {
        let Ok(permit) = room.clone().try_acquire_owned() else {
            return Err("the server has as many connections as it may (http.max_connections)");
        };
        let share = if self.gate.is_shared(address) {
            None
        } else {
            let Some(share) = self.per_address.take_for_address(address) else {
                return Err(
                    "this address has as many connections as it may (limits.connections_per_address)",
                );
            };
            Some(share)
        };
        Ok(Seat {
            _permit: permit,
            _share: share,
        })
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
            let Ok((stream, address)) = self.sockets.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (shared, late) = (self.shared.clone(), late.clone());
            tokio::spawn(async move {
                let address = address.ip().to_canonical();
                let accepting = Client::accept(stream, address, shared.http.header_timeout);
                let Some(client) = accepting.await else {
                    return;
                };
                // Counted only now: a silent connection must not delay the end.
                if let Ok(permit) = late.try_acquire_owned() {
                    serve_late(shared, client).await;
                    drop(permit);
                }
                drop(place_permit);
            });
        }
    }
}

impl Client {
    /// `None` if it has hung up, or sent nothing in time.
    async fn accept(stream: TcpStream, address: IpAddr, patience: Duration) -> Option<Self> {
        let _ = stream.set_nodelay(true);
        let (stream, is_http2) = protocol(stream, patience).await.ok()?;
        Some(Self {
            stream,
            is_http2,
            address,
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// The connection as hyper reads and writes it, and what its requests are given. The seat is left
    /// when the connection is closed.
    fn into_parts(
        self,
        http: &Http,
        seat: Option<Seat>,
    ) -> (TokioIo<WriteTimeout<Rewound<S>>>, Caller) {
        let caller = Caller {
            address: ClientAddress(self.address),
            unsent: UnsentAnswers::of_connection(self.is_http2),
        };
        let (limit, unsent) = (http.write_timeout, caller.unsent.clone());
        let stream = WriteTimeout::new(self.stream, limit, unsent, seat);
        (TokioIo::new(stream), caller)
    }
}

/// The other end of a connection, for each of its requests.
#[derive(Clone, Debug)]
struct Caller {
    address: ClientAddress,
    unsent: UnsentAnswers,
}

async fn serve(
    shared: Arc<ConnectionContext>,
    accepting: impl Future<Output = Option<Client>>,
    mut stopping: StopSignal,
    seat: Seat,
) {
    let mut accepting = std::pin::pin!(accepting);
    let client = tokio::select! {
        biased;
        client = accepting.as_mut() => client,
        () = stopping.received() => {
            // It has sent no request yet, unless that is on its way.
            if let Ok(Some(client)) = timeout(BEGUN_TIME, accepting).await {
                serve_late(shared, client).await;
            }
            return;
        }
    };
    let Some(client) = client else { return };
    // Each in a task of its own size: this one is as large as the larger of its branches.
    if client.is_http2 {
        tokio::spawn(serve_http2(shared, client, stopping, seat));
    } else {
        tokio::spawn(serve_http1(shared, client, stopping, seat));
    }
}

async fn serve_http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    shared: Arc<ConnectionContext>,
    client: Client<S>,
    mut stopping: StopSignal,
    seat: Seat,
) {
    let builder = http1_builder(&shared.http);
    let (stream, caller) = client.into_parts(&shared.http, Some(seat));
    let service = service_fn(move |request| {
        let request = caller.request(request, &shared.http);
        answer(shared.clone(), request)
    });
    let connection = builder.serve_connection(stream, service);
    // A connection that becomes a WebSocket ends here: its door ends it when the server stops.
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

async fn serve_http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    shared: Arc<ConnectionContext>,
    client: Client<S>,
    mut stopping: StopSignal,
    seat: Seat,
) {
    let builder = http2_builder(&shared.http);
    let (stream, caller) = client.into_parts(&shared.http, Some(seat));
    let service = service_fn(move |request| {
        let request = caller.request(request, &shared.http);
        answer(shared.clone(), request)
    });
    let mut connection = std::pin::pin!(builder.serve_connection(stream, service));
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = stopping.received() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// One request: a probe is answered, every other one refused.
async fn serve_reserved(
    shared: Arc<ConnectionContext>,
    accepting: impl Future<Output = Option<Client>>,
    refusal: &'static str,
    _reserved: OwnedSemaphorePermit,
) {
    let serving = async {
        // Over HTTP/2 there are no supervisors.
        let client = accepting.await.filter(|client| !client.is_http2);
        let Some(client) = client else { return };
        let (stream, caller) = client.into_parts(&shared.http, None);
        let mut builder = http1_builder(&shared.http);
        builder.header_read_timeout(RESERVE_HEAD).keep_alive(false);
        let service = service_fn(move |request: Request<Incoming>| {
            let request = caller.request(request, &shared.http);
            let shared = shared.clone();
            async move {
                if Auth::is_probe(request.uri().path()) {
                    return answer(shared, request).await;
                }
                let refused = format!("{refusal}; nothing was done, try again later");
                Ok(Problem::unavailable("too-many-connections", refused).into_response())
            }
        });
        let _ = builder.serve_connection(stream, service).await;
    };
    let _ = timeout(RESERVE_TIME, serving).await;
}

/// One request over HTTP/1.1; over HTTP/2 those that come together with the first.
async fn serve_late(shared: Arc<ConnectionContext>, client: Client) {
    let is_http2 = client.is_http2;
    let (stream, caller) = client.into_parts(&shared.http, None);
    let (mut http1, http2) = (http1_builder(&shared.http), http2_builder(&shared.http));
    let service = service_fn(move |request| {
        let request = caller.request(request, &shared.http);
        answer(shared.clone(), request)
    });
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

impl Caller {
    fn request(&self, request: Request<Incoming>, http: &Http) -> Request<Body> {
        let mut request = request.map(|body| paced(body, http.body_timeout, http.body_rate));
        self.put_into(&mut request);
        request
    }

    fn put_into(&self, request: &mut Request<Body>) {
        request.extensions_mut().insert(self.address);
        request.extensions_mut().insert(self.unsent.clone());
    }
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
        .max_send_buf_size(HTTP2_SEND_BUFFER)
        .max_concurrent_streams(http.http2_max_streams)
        .max_header_list_size(u32::try_from(http.max_headers).unwrap_or(u32::MAX));
    builder
}

async fn answer(
    shared: Arc<ConnectionContext>,
    request: Request<Body>,
) -> Result<Response, Infallible> {
    Ok(shared.gate.pass(request, &shared.router).await)
}
