//! The events of one client, handled in the order in which they arrived: a leave must not overtake
//! its join, which may still wait for the store. There is no task while the inbox is empty.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use serde_json::Value;
use socketioxide::{
    extract::{AckSender, SocketRef},
    socket::Sid,
};

use super::{
    SocketBackend, SocketId,
    client_event::{ClientEvent, OfferKind},
    hub::Hub,
    rooms::{JoinOutcome, MAX_ROOMS},
    session::Session,
};
use crate::{caller::Caller, error::Error, name::GLOBAL, problem};

/// A client that has reconnected joins all its rooms at once.
const MAX_WAITING: usize = 2 * MAX_ROOMS;

pub(super) struct Inbox {
    hub: Arc<Hub>,
    front: Arc<dyn SocketBackend>,
    caller: Caller,
    session: Arc<Session>,
    /// It has entered the hub, or may no more.
    seen: AtomicBool,
    waiting: Mutex<InboxQueue>,
}

struct InboxQueue {
    asked: VecDeque<(ClientEvent, AckSender)>,
    /// A task takes from it, or will when the client has entered.
    at_work: bool,
}

impl Inbox {
    pub(super) fn new(
        hub: Arc<Hub>,
        front: Arc<dyn SocketBackend>,
        caller: Caller,
        session: Arc<Session>,
    ) -> Self {
        Self {
            hub,
            front,
            caller,
            session,
            seen: AtomicBool::new(false),
            waiting: Mutex::new(InboxQueue {
                asked: VecDeque::new(),
                at_work: true,
            }),
        }
    }

    /// The client is connected and can be sent events. Handles the events until now.
    pub(super) async fn enter(self: Arc<Self>, socket: SocketRef) {
        self.hub.enter(&socket, &self.session, &self.seen);
        self.work(socket).await;
    }

    pub(super) fn arrive(self: &Arc<Self>, socket: SocketRef, packet: &str, ack: AckSender) {
        let Some(asked) = ClientEvent::read(packet) else {
            tracing::debug!(id = %socket.id, "a client sent an unknown or malformed event");
            return;
        };
        let mut waiting = self.waiting();
        if waiting.asked.len() >= MAX_WAITING {
            tracing::info!(id = %socket.id, "a client sent too many events at once and was cut");
            self.session.cut();
            return;
        }
        waiting.asked.push_back((asked, ack));
        if !mem::replace(&mut waiting.at_work, true) {
            tokio::spawn(self.clone().work(socket));
        }
    }

    pub(super) fn leave(&self, id: Sid) {
        self.hub.end(id, &self.seen);
    }

    async fn work(self: Arc<Self>, socket: SocketRef) {
        while let Some((asked, ack)) = self.next() {
            self.answer(socket.id, asked, ack).await;
        }
    }

    fn next(&self) -> Option<(ClientEvent, AckSender)> {
        let mut waiting = self.waiting();
        let next = waiting.asked.pop_front();
        if next.is_none() {
            *waiting = InboxQueue {
                asked: VecDeque::new(),
                at_work: false,
            };
        }
        next
    }

    async fn answer(&self, id: Sid, asked: ClientEvent, ack: AckSender) {
        match asked {
            ClientEvent::Join(offer, name, worker) => {
                let may = match offer {
                    OfferKind::Job => self.front.may_serve_job(self.caller, name.clone(), worker),
                    OfferKind::Provider => {
                        self.front
                            .may_serve_provider(self.caller, name.clone(), worker)
                    }
                };
                match may.await {
                    Ok(true) => {}
                    Ok(false) => {
                        tracing::debug!(%id, %name, "a client may not serve what it asked to");
                        return;
                    }
                    Err(error) => {
                        tracing::info!(%id, %error, "a join could not be decided, its client was cut");
                        self.session.cut();
                        return;
                    }
                }
                if self.hub.join_offer(id, offer, name, self.caller) == JoinOutcome::TooMany {
                    tracing::debug!(%id, "a client is in too many rooms");
                }
            }
            ClientEvent::Leave(offer, name) => self.hub.leave(id, &offer.room(&name)),
            ClientEvent::Room { room, frontend } => {
                let answer = self.enter_room(id, room, frontend).await;
                let _ = ack.send(&answer);
            }
            ClientEvent::NoRoom => {
                let _ = ack.send(&invalid(
                    "room_id: the name of a room is missing or too long",
                ));
            }
        }
    }

    async fn enter_room(&self, id: Sid, room: String, frontend: bool) -> Value {
        let entered = self
            .front
            .room_join(self.caller, room.clone(), SocketId(id));
        let told = match entered.await {
            Ok(told) => told,
            Err(problem) => return problem,
        };
        let everywhere = frontend.then_some(GLOBAL);
        for room in [room.as_str()].into_iter().chain(everywhere) {
            if self.hub.join(id, &format!("room:{room}")) == JoinOutcome::TooMany {
                return invalid(&format!("this client is in {MAX_ROOMS} rooms, the limit"));
            }
        }
        told
    }

    fn waiting(&self) -> MutexGuard<'_, InboxQueue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn invalid(detail: &str) -> Value {
    let document = Error::document(&problem::UNPROCESSABLE_CONTENT, detail);
    serde_json::to_value(document).unwrap_or_default()
}
