//! Questions on their way to providers.
//!
//! On each node that has sockets of a provider a task waits for questions to it, as any reader waits
//! for its answer. A question that was asked before the provider came, or while the line to it was
//! down, is in the store and is sent when it comes.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::mpsc, time::sleep};
use uuid::Uuid;
use wakeline_wake::{Outcome, Settled};

use super::{Jobs, OUTAGE_PAUSE};
use crate::{
    events::{PROVIDER_REQUEST, provider_request, provider_room},
    name::FullName,
    provider::{Provider, Request},
    socket::SocketId,
    topic::Wait,
};

/// What one provider's task may have to do; a question past it is found in the store.
const MAX_SAID: usize = 1_024;
/// A dispatcher's place in the engine is taken anew after so long.
const LONG: Duration = Duration::from_secs(24 * 3_600);

/// The providers that have sockets here.
#[derive(Debug, Default)]
pub(super) struct Dispatchers(Mutex<HashMap<FullName, mpsc::Sender<Said>>>);

#[derive(Debug)]
enum Said {
    /// This socket has been told nothing yet.
    Joined(SocketId),
    Asked(Request),
}

/// Who has been told what.
#[derive(Debug)]
struct Told {
    name: FullName,
    room: String,
    sockets: Vec<SocketId>,
    sent: HashSet<Uuid>,
}

impl Told {
    fn new(name: FullName) -> Self {
        Self {
            room: provider_room(&name),
            name,
            sockets: Vec::new(),
            sent: HashSet::new(),
        }
    }
}

impl Dispatchers {
    fn lock(&self) -> MutexGuard<'_, HashMap<FullName, mpsc::Sender<Said>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody here sends it on.
    fn take(&self, name: &FullName, request: &Request) -> bool {
        self.lock()
            .get(name)
            .is_some_and(|said| said.try_send(Said::Asked(request.clone())).is_ok())
    }
}

impl Jobs {
    /// Asks a provider, wherever it is.
    pub(super) fn dispatch(self: &Arc<Self>, provider: &Arc<Provider>, request: Request) {
        metrics::counter!("wakeline_jobs_dispatches_total").increment(1);
        if provider.name.is_internal() {
            self.run_internal(provider.clone(), request);
            return;
        }
        let wake = Wait::Requests(provider.name.clone()).wake();
        if self.dispatchers.take(&provider.name, &request) {
            self.bus.publish_elsewhere(&[wake]);
        } else {
            self.bus.publish(&[wake]);
        }
    }

    pub(super) fn provider_joins(self: &Arc<Self>, name: FullName, socket: SocketId) {
        let mut dispatchers = self.dispatchers.lock();
        let said = dispatchers.entry(name.clone()).or_insert_with(|| {
            let (said, hears) = mpsc::channel(MAX_SAID);
            tokio::spawn(self.clone().send_questions(name, hears));
            said
        });
        if said.try_send(Said::Joined(socket)).is_err() {
            tracing::warn!("a provider's socket joined in a crowd and is told only what comes");
        }
    }

    pub(super) fn provider_leaves(&self, name: &FullName) {
        self.dispatchers.lock().remove(name);
    }

    async fn send_questions(self: Arc<Self>, name: FullName, mut hears: mpsc::Receiver<Said>) {
        let place = Wait::Requests(name.clone()).place();
        let mut told = Told::new(name);
        'registered: loop {
            let Ok(mut waiter) = self.engine.register(std::slice::from_ref(&place), LONG) else {
                if self.engine.is_draining() {
                    return;
                }
                sleep(OUTAGE_PAUSE).await;
                continue;
            };
            self.send_unsent(&mut told).await;
            loop {
                tokio::select! {
                    said = hears.recv() => match said {
                        None => return,
                        Some(Said::Joined(socket)) => {
                            // The others have these already.
                            self.send_unsent(&mut told).await;
                            for request in self.unanswered(&told.name).await {
                                told.sent.insert(request.token);
                                let payload = provider_request(&told.name, &request);
                                self.sockets.send(socket, PROVIDER_REQUEST, &payload);
                            }
                            told.sockets.push(socket);
                        }
                        Some(Said::Asked(request)) => {
                            if told.sent.insert(request.token) {
                                self.send(&mut told, &request);
                            }
                        }
                    },
                    outcome = waiter.park() => match outcome {
                        Outcome::Woken { .. } => {
                            self.send_unsent(&mut told).await;
                            waiter.settle(Settled::Nothing);
                        }
                        Outcome::Deadline => continue 'registered,
                        Outcome::Drain => return,
                    },
                }
            }
        }
    }

    /// To each socket by itself and not to the room: one that has just joined is sent everything
    /// when its turn comes, and must not have some of it twice.
    fn send(&self, told: &mut Told, request: &Request) {
        let payload = provider_request(&told.name, request);
        told.sockets
            .retain(|socket| self.sockets.is_in(*socket, &told.room));
        for socket in &told.sockets {
            self.sockets.send(*socket, PROVIDER_REQUEST, &payload);
        }
    }

    /// What was sent and is answered by now is forgotten.
    async fn send_unsent(&self, told: &mut Told) {
        if told.sockets.is_empty() {
            return;
        }
        let open = self.unanswered(&told.name).await;
        for request in &open {
            if !told.sent.contains(&request.token) {
                self.send(told, request);
            }
        }
        told.sent = open.into_iter().map(|request| request.token).collect();
    }

    async fn unanswered(&self, name: &FullName) -> Vec<Request> {
        let asked = async {
            let found = self.store.find_providers(vec![name.clone()]).await?;
            match found.into_iter().flatten().next() {
                Some(provider) => {
                    let results = self.results.of(&name.category);
                    results.in_flight(provider.id, provider.version).await
                }
                None => Ok(Vec::new()),
            }
        };
        match asked.await {
            Ok(open) => open,
            Err(error) => {
                tracing::debug!(%error, "questions for a provider could not be read");
                let place = Wait::Requests(name.clone()).place();
                self.engine.alarm(&place, OUTAGE_PAUSE);
                Vec::new()
            }
        }
    }
}
