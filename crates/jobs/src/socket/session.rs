//! Engine.IO sessions: each counts towards the limit for as long as it lives, and can be cut.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{Router, body::Body, extract::Request, response::Response};
use bytes::Bytes;
use http::Method;
use socketioxide::{service::SocketIoService, socket::Sid};
use tokio::{runtime::Handle, sync::Notify};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};
use tower::ServiceExt;

use super::{
    payload,
    places::{PlaceId, PlaceOutcome, SocketPlaces},
};

/// Only requests for its path come here; the router behind it has no routes.
pub(super) type Engine = SocketIoService<Router>;

pub(super) struct Sessions {
    engine: Engine,
    places: Mutex<SocketPlaces<Weak<Session>>>,
    known: Mutex<HashMap<Sid, Weak<Session>>>,
    closing: CancellationToken,
    wires: TaskTracker,
}

/// Kept by its socket, as an extension of the request that opened it, and by its connection.
pub(super) struct Session {
    all: Arc<Sessions>,
    id: OnceLock<Sid>,
    cut: CancellationToken,
    upgrading: AtomicBool,
    /// Packets that did not fit into the last answer to a poll.
    rest: Mutex<Option<Bytes>>,
    rest_taken: Notify,
    place: PlaceId,
}

impl Sessions {
    pub(super) fn new(engine: Engine, max: usize) -> Self {
        Self {
            engine,
            places: Mutex::new(SocketPlaces::new(max)),
            known: Mutex::default(),
            closing: CancellationToken::new(),
            wires: TaskTracker::new(),
        }
    }

    /// `None`: all places are taken by connected clients.
    pub(super) fn open(self: &Arc<Self>) -> Option<Arc<Session>> {
        let mut opened = None;
        let known = |place| Arc::downgrade(opened.insert(Arc::new(Session::new(self, place))));
        let random = |count| rand::random_range(0..count);
        let taken = self.places().take(known, random);
        if let PlaceOutcome::InsteadOf(_, displaced) = taken
            && let Some(displaced) = displaced.upgrade()
        {
            displaced.cut();
            tracing::debug!("a session without a connected client was cut for a new one");
        }
        opened
    }

    pub(super) fn find(&self, id: Sid) -> Option<Arc<Session>> {
        self.known().get(&id).and_then(Weak::upgrade)
    }

    pub(super) fn engine(&self) -> Engine {
        self.engine.clone()
    }

    pub(super) async fn ask(&self, request: Request) -> Response {
        match self.engine().oneshot(request).await {
            Ok(response) => response.map(Body::new),
            Err(never) => match never {},
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.is_cancelled()
    }

    /// Cuts all connections, and those that come later.
    pub(super) fn close(&self) {
        self.closing.cancel();
        self.wires.close();
    }

    /// After [`Sessions::close`]: the last WebSocket has ended.
    pub(super) async fn ended(&self) {
        self.wires.wait().await;
    }

    fn places(&self) -> MutexGuard<'_, SocketPlaces<Weak<Session>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Sid, Weak<Session>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn new(all: &Arc<Sessions>, place: PlaceId) -> Self {
        Self {
            all: all.clone(),
            id: OnceLock::new(),
            cut: all.closing.child_token(),
            upgrading: AtomicBool::new(false),
            rest: Mutex::default(),
            rest_taken: Notify::new(),
            place,
        }
    }

    /// Its client has connected with a token. `false`: it was cut meanwhile.
    pub(super) fn connect(&self) -> bool {
        self.all.places().connect(self.place) && !self.is_cut()
    }

    pub(super) fn is_connected(&self) -> bool {
        self.all.places().is_connected(self.place)
    }

    /// The id is known only once there is a socket.
    pub(super) fn is(self: &Arc<Self>, id: Sid) {
        if self.id.set(id).is_ok() {
            self.all.known().insert(id, Arc::downgrade(self));
        }
    }

    /// Ends it without a word. Whether it was not cut before.
    pub(super) fn cut(&self) -> bool {
        if self.is_cut() {
            return false;
        }
        self.cut.cancel();
        if let (Some(id), Ok(runtime)) = (self.id.get(), Handle::try_current()) {
            runtime.spawn(forget(self.all.clone(), *id));
        }
        true
    }

    pub(super) fn is_cut(&self) -> bool {
        self.cut.is_cancelled()
    }

    pub(super) fn cutting(&self) -> &CancellationToken {
        &self.cut
    }

    /// Counts a WebSocket for as long as it lives.
    pub(super) fn count_wire(&self) -> TaskTrackerToken {
        self.all.wires.token()
    }

    /// The packets that are ready for this poll.
    pub(super) fn take_rest(&self) -> Option<Bytes> {
        let mut rest = self.rest();
        let (first, left) = payload::split(rest.take()?);
        *rest = left;
        if rest.is_none() {
            self.rest_taken.notify_waiters();
        }
        Some(first)
    }

    /// The part of an answer to a poll that is sent now. A client that upgrades gets all of it: it
    /// may not poll again, and only clients that upgrade before anything was sent to them need
    /// short answers.
    pub(super) fn shorten(&self, answer: Bytes) -> Bytes {
        let mut rest = self.rest();
        if self.upgrading.load(Ordering::Relaxed) {
            return answer;
        }
        let (first, left) = payload::split(answer);
        *rest = left;
        first
    }

    /// The WebSocket did not come about.
    pub(super) fn stay(&self) {
        self.upgrading.store(false, Ordering::Relaxed);
    }

    /// Waits until the client has polled for all that was kept here.
    pub(super) async fn upgrade(&self) {
        {
            // Under the lock: from now on nothing more is kept.
            let _rest = self.rest();
            self.upgrading.store(true, Ordering::Relaxed);
        }
        loop {
            let taken = self.rest_taken.notified();
            if self.rest().is_none() {
                return;
            }
            taken.await;
        }
    }

    fn rest(&self) -> MutexGuard<'_, Option<Bytes>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.all.places().free(self.place);
        if let Some(id) = self.id.get() {
            self.all.known().remove(id);
        }
    }
}

/// Sends the client's own farewell for it. The session of a WebSocket ends with its connection, but
/// a polling session would last until its heartbeat fails, and a session that was cut in the middle
/// of an upgrade for ever.
async fn forget(sessions: Arc<Sessions>, id: Sid) {
    let mut request = Request::new(Body::from("1"));
    *request.method_mut() = Method::POST;
    if let Ok(target) = format!("/socket.io/?EIO=4&transport=polling&sid={id}").parse() {
        *request.uri_mut() = target;
        sessions.ask(request).await;
    }
}
