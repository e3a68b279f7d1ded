//! Socket.IO for this node: the connected clients, their rooms, and the events that they are sent.
//!
//! A connection that the server ends is cut, never closed: after one of Socket.IO's own farewells a
//! Python client stays away for good, and after a cut it reconnects. So a client that is too slow
//! for its events is cut too, instead of missing some: it joins its rooms again and gets the open
//! requests again.
//!
//! In reading order: [`service`] is the HTTP side and [`session`] its state, with [`payload`] and
//! [`wire`] for the two transports; [`client_event`] is what clients send and [`inbox`] does it, in
//! order; [`rooms`] has the members of rooms and [`places`] the limit of sessions.

mod client_event;
mod hub;
mod inbox;
mod payload;
mod places;
mod rooms;
mod service;
mod session;
mod wire;

use std::{fmt, sync::Arc, time::Duration};

use axum::Router;
use futures_util::future::BoxFuture;
use serde_json::{Value, value::RawValue};
use socketioxide::{
    SocketIo,
    extract::{AckSender, Extension, MaybeHttpExtension, SocketRef, TryData},
    handler::ConnectHandler,
    socket::Sid,
};
use uuid::Uuid;

use crate::{caller::Caller, error::Error, name::FullName};
use hub::Hub;
use inbox::Inbox;
use session::{Session, Sessions};

pub use rooms::MAX_ROOMS;
pub use service::Service;

/// The refusal that zndraw's clients know.
const REFUSED: &str = "Connection refused by server";
/// Bytes that are read of a WebSocket at once: clients send short messages.
const READ_BUFFER: usize = 1024;
/// How long a session may have no client that has connected with a token.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// How long the last connections may take to end after they were cut.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Limits {
    /// Engine.IO sessions at once; past it new ones are refused. At most half of them are sessions
    /// whose client has not connected with a token.
    pub connections: usize,
    /// Bytes of a message from a client, and of an answer to a poll.
    pub max_payload: u64,
    /// Events that wait for one client; a client with more is cut.
    pub buffer: usize,
    pub ping_interval: Duration,
    /// Also how long a write may stand still.
    pub ping_timeout: Duration,
}

/// A connected client, as long as it is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SocketId(Sid);

impl fmt::Display for SocketId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// What the sockets need from the door.
pub trait SocketBackend: Send + Sync + 'static {
    /// The user of a token. `None`: the connection is refused.
    fn connect(&self, token: Option<String>) -> BoxFuture<'_, Option<Caller>>;

    /// Whether this caller does the job of this name with this worker. A join has no answer, so a
    /// join that cannot be decided ends the connection: the client reconnects and joins again.
    fn may_serve_job(
        &self,
        caller: Caller,
        name: FullName,
        worker: Option<Uuid>,
    ) -> BoxFuture<'_, Result<bool, Error>>;

    /// Whether this caller answers for the provider of this name with this worker.
    fn may_serve_provider(
        &self,
        caller: Caller,
        name: FullName,
        worker: Option<Uuid>,
    ) -> BoxFuture<'_, Result<bool, Error>>;

    /// The socket has joined the provider's room. Calls of this and of
    /// [`SocketBackend::provider_left`] come one at a time, in the order in which it happened;
    /// [`Sockets`] may be used from both.
    fn provider_joined(&self, name: FullName, socket: SocketId, caller: Caller);

    /// The last socket of this node has left the provider's room, by saying so or by its end.
    fn provider_left(&self, name: FullName);

    /// The answer to a client that enters the room, or the problem why it does not.
    fn room_join(
        &self,
        caller: Caller,
        room: String,
        socket: SocketId,
    ) -> BoxFuture<'_, Result<Value, Value>>;
}

/// The connected clients of this node.
pub struct Sockets {
    io: SocketIo,
    hub: Arc<Hub>,
}

impl Sockets {
    /// The sockets, and the service that is mounted at `/socket.io` and `/socket.io/`.
    #[must_use]
    pub fn new(limits: &Limits) -> (Arc<Self>, Service) {
        let max_message = usize::try_from(limits.max_payload).unwrap_or(usize::MAX);
        let (engine, io) = SocketIo::builder()
            .ping_interval(limits.ping_interval)
            .ping_timeout(limits.ping_timeout)
            .max_payload(limits.max_payload)
            .ws_max_message_size(max_message)
            .ws_max_frame_size(max_message)
            .ws_read_buffer_size(READ_BUFFER)
            .max_buffer_size(limits.buffer)
            .connect_timeout(limits.ping_timeout.min(CONNECT_TIME))
            .build_with_inner_svc(Router::new());
        let sessions = Arc::new(Sessions::new(engine, limits.connections));
        let service = Service::new(sessions.clone(), limits.ping_timeout);
        let hub = Arc::new(Hub::new(sessions));
        (Arc::new(Self { io, hub }), service)
    }

    /// Lets clients in from now on. Called once, before the server listens.
    pub fn serve(&self, front: Arc<dyn SocketBackend>) {
        let hub = self.hub.clone();
        hub.serve(front.clone());
        let admit =
            move |socket: SocketRef,
                  TryData(auth): TryData<Auth>,
                  MaybeHttpExtension(session): MaybeHttpExtension<Arc<Session>>| {
                let (hub, front) = (hub.clone(), front.clone());
                async move {
                    let token = auth.ok().and_then(|auth| auth.token);
                    let caller = front.connect(token).await.ok_or(REFUSED)?;
                    let session = session.ok_or(REFUSED)?;
                    if !session.connect() {
                        return Err(REFUSED);
                    }
                    session.is(socket.id);
                    receive(&socket, Arc::new(Inbox::new(hub, front, caller, session)));
                    Ok::<(), &'static str>(())
                }
            };
        let enter = async |socket: SocketRef, Extension(inbox): Extension<Arc<Inbox>>| {
            inbox.enter(socket).await;
        };
        self.io.ns("/", enter.with(admit));
    }

    /// To all in the room on this node. `payload` is sent as it is.
    pub fn emit(&self, room: &str, event: &str, payload: &RawValue) {
        self.hub.emit(room, event, payload);
    }

    /// To one socket, if it is still connected.
    pub fn send(&self, socket: SocketId, event: &str, payload: &RawValue) {
        self.hub.send(socket.0, event, payload);
    }

    /// How many of this node are in the room.
    #[must_use]
    pub fn members(&self, room: &str) -> usize {
        self.hub.members(room)
    }

    #[must_use]
    pub fn is_in(&self, socket: SocketId, room: &str) -> bool {
        self.hub.is_in(socket.0, room)
    }

    #[must_use]
    pub fn connected(&self) -> usize {
        self.hub.connected()
    }

    /// Cuts all connections and takes no more, so that clients go to another node or come back
    /// later. Events that were not sent yet are lost.
    pub async fn close(&self) {
        self.hub.close();
        let ended = self.hub.sessions().ended();
        if tokio::time::timeout(CLOSE_PATIENCE, ended).await.is_err() {
            tracing::debug!("sockets were still open when they should have ended");
        }
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sockets")
            .field("connected", &self.connected())
            .finish_non_exhaustive()
    }
}

#[derive(serde::Deserialize)]
struct Auth {
    token: Option<String>,
}

/// Called before the client is told that it is connected: what it sends then must find its
/// handlers.
fn receive(socket: &SocketRef, inbox: Arc<Inbox>) {
    socket.extensions.insert(inbox);
    socket.on_fallback(
        |socket: SocketRef,
         Extension(inbox): Extension<Arc<Inbox>>,
         TryData(packet): TryData<Box<RawValue>>,
         ack: AckSender| {
            // Here and not in the future, because futures run in no order.
            if let Ok(packet) = packet {
                inbox.arrive(socket, packet.get(), ack);
            }
            std::future::ready(())
        },
    );
    socket.on_disconnect(
        async |socket: SocketRef, Extension(inbox): Extension<Arc<Inbox>>| {
            inbox.leave(socket.id);
        },
    );
}
