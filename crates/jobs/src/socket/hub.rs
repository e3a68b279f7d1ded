//! The rooms with their sockets, and the calls to the door when they change.

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicBool, Ordering},
};

use serde_json::value::RawValue;
use socketioxide::{SendError, SocketError, extract::SocketRef, socket::Sid};

use super::{
    SocketBackend, SocketId,
    client_event::{self, OfferKind},
    rooms::{JoinOutcome, Rooms},
    session::{Session, Sessions},
};
use crate::{caller::Caller, metrics, name::FullName};

pub(super) struct Hub {
    rooms: RwLock<Rooms<Client>>,
    /// Held from a change until the door was called, so that it is called in order. `emit` does not
    /// hold it: the door emits while it is called.
    turn: Mutex<()>,
    front: OnceLock<Arc<dyn SocketBackend>>,
    sessions: Arc<Sessions>,
}

struct Client {
    socket: SocketRef,
    session: Arc<Session>,
}

impl Hub {
    pub(super) fn new(sessions: Arc<Sessions>) -> Self {
        Self {
            rooms: RwLock::default(),
            turn: Mutex::default(),
            front: OnceLock::new(),
            sessions,
        }
    }

    pub(super) fn serve(&self, front: Arc<dyn SocketBackend>) {
        assert!(self.front.set(front).is_ok(), "serve is called once");
    }

    /// Once per connection: `seen` keeps a client that has ended already from entering after that.
    pub(super) fn enter(&self, socket: &SocketRef, session: &Arc<Session>, seen: &AtomicBool) {
        let _turn = self.turn();
        if seen.swap(true, Ordering::Relaxed) || session.is_cut() {
            return;
        }
        let client = Client {
            socket: socket.clone(),
            session: session.clone(),
        };
        let mut rooms = self.write();
        rooms.enter(socket.id, client);
        count(&rooms);
    }

    pub(super) fn join(&self, id: Sid, room: &str) -> JoinOutcome {
        let _turn = self.turn();
        self.write().join(id, room)
    }

    pub(super) fn join_offer(
        &self,
        id: Sid,
        offer: OfferKind,
        name: FullName,
        caller: Caller,
    ) -> JoinOutcome {
        let _turn = self.turn();
        let joined = self.write().join(id, &offer.room(&name));
        if let (JoinOutcome::Now, OfferKind::Provider, Some(front)) =
            (joined, offer, self.front.get())
        {
            front.provider_joined(name, SocketId(id), caller);
        }
        joined
    }

    pub(super) fn leave(&self, id: Sid, room: &str) {
        let _turn = self.turn();
        let last = self.write().leave(id, room);
        if last {
            self.empty(room);
        }
    }

    pub(super) fn end(&self, id: Sid, seen: &AtomicBool) {
        let _turn = self.turn();
        seen.store(true, Ordering::Relaxed);
        let empty = {
            let mut rooms = self.write();
            let empty = rooms.remove(id);
            count(&rooms);
            empty
        };
        for room in empty {
            self.empty(&room);
        }
    }

    pub(super) fn emit(&self, room: &str, event: &str, payload: &RawValue) {
        for (id, client) in self.read().members(room) {
            self.tell(id, client, event, payload);
        }
    }

    pub(super) fn send(&self, id: Sid, event: &str, payload: &RawValue) {
        if let Some(client) = self.read().member(id) {
            self.tell(id, client, event, payload);
        }
    }

    fn tell(&self, id: Sid, client: &Client, event: &str, payload: &RawValue) {
        match client.socket.emit(event, payload) {
            // Closed: its end is on the way here.
            Ok(()) | Err(SendError::Socket(SocketError::Closed)) => {}
            Err(SendError::Socket(SocketError::InternalChannelFull)) => {
                if client.session.cut() {
                    tracing::info!(%id, "a client did not take its events and was cut");
                }
            }
            Err(SendError::Serialize(error)) => {
                tracing::warn!(%error, event, "an event could not be written");
            }
        }
    }

    pub(super) fn members(&self, room: &str) -> usize {
        self.read().count(room)
    }

    pub(super) fn is_in(&self, id: Sid, room: &str) -> bool {
        self.read().members(room).any(|(member, _)| member == id)
    }

    pub(super) fn connected(&self) -> usize {
        self.read().connected()
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(super) fn close(&self) {
        // First, so that no client enters after the rooms were emptied.
        self.sessions.close();
        let _turn = self.turn();
        let empty = {
            let mut rooms = self.write();
            let empty = rooms.clear();
            count(&rooms);
            empty
        };
        for room in empty {
            self.empty(&room);
        }
    }

    fn empty(&self, room: &str) {
        if let (Some(name), Some(front)) = (client_event::provider(room), self.front.get()) {
            front.provider_left(name);
        }
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, Rooms<Client>> {
        self.rooms.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Rooms<Client>> {
        self.rooms.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(rooms: &Rooms<Client>) {
    metrics::sockets(rooms.connected());
}
