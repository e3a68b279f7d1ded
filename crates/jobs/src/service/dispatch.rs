//! Requests on their way to providers.
//!
//! On each node that has sockets of a provider, a dispatcher waits for requests to it, as a reader
//! waits for its answer. Requests that were made before the provider connected, or while the
//! connection was down, are in the store and are sent when it connects.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex as AsyncMutex, mpsc},
    time::sleep,
};
use uuid::Uuid;
use wakeline_wake::{Cause, CheckResult, Hold, HoldEnd, HoldError, HoldRefusal, WaitKey};

use super::{Jobs, OUTAGE_PAUSE};
use crate::{
    caller::Caller,
    events::{PROVIDER_REQUEST, provider_request, provider_room},
    metrics,
    name::FullName,
    provider::{Provider, ProviderRequest},
    results::MAX_IN_FLIGHT,
    socket::SocketId,
    topic::Wait,
};

/// Requests that may wait for one dispatcher; it finds further ones in the store.
const MAX_REQUESTS: usize = 1_024;
/// From so many sent requests on, the dispatcher checks which of them are answered.
const MANY_SENT: usize = 1_024;
/// A dispatcher holds for so long, then it holds again.
const LONG: Duration = Duration::from_secs(24 * 3_600);

/// The providers that have sockets on this node.
#[derive(Debug, Default)]
pub(super) struct Dispatchers(Mutex<HashMap<FullName, Dispatcher>>);

#[derive(Debug)]
struct Dispatcher {
    /// Each with the user whose provider it is for.
    requests: mpsc::Sender<(ProviderRequest, Uuid)>,
    joined: Arc<NewListeners>,
}

/// Sockets that have been sent nothing yet. They are not in the channel of requests, which may be
/// full: a socket that is lost here gets no requests at all.
#[derive(Debug, Default)]
struct NewListeners(Mutex<Vec<Listener>>);

/// A socket and its user: a provider can become another user's while its sockets stay.
#[derive(Clone, Copy, Debug)]
struct Listener {
    socket: SocketId,
    caller: Caller,
}

/// Which sockets there are, and which requests they have been sent.
#[derive(Debug)]
struct DispatchState {
    name: FullName,
    room: String,
    sockets: Vec<Listener>,
    newcomers: Vec<Listener>,
    sent: HashSet<Uuid>,
    /// How many may have been sent before the dispatcher checks which are answered.
    most: usize,
}

/// The requests that a provider has not answered, and its user.
struct OpenRequests {
    user: Uuid,
    requests: Vec<ProviderRequest>,
}

impl DispatchState {
    fn new(name: FullName) -> Self {
        Self {
            room: provider_room(&name),
            name,
            sockets: Vec::new(),
            newcomers: Vec::new(),
            sent: HashSet::new(),
            most: MANY_SENT,
        }
    }

    /// A socket that has left and joined again is new, and is not listed twice.
    fn welcome(&mut self, joined: Vec<Listener>) {
        for new in joined {
            self.sockets.retain(|known| known.socket != new.socket);
            self.newcomers.retain(|known| known.socket != new.socket);
            self.newcomers.push(new);
        }
    }

    /// Forgets the sent requests that are answered by now, unless not all open requests were read.
    fn keep(&mut self, open: &[ProviderRequest]) {
        let tokens = open.iter().map(|request| request.token);
        if open.len() < MAX_IN_FLIGHT {
            self.sent = tokens.collect();
        } else {
            self.sent.extend(tokens);
        }
        self.most = MANY_SENT.max(2 * self.sent.len());
    }
}

impl NewListeners {
    fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dispatchers {
    fn lock(&self) -> MutexGuard<'_, HashMap<FullName, Dispatcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a dispatcher of this node has taken the request.
    fn take(&self, provider: &Provider, request: &ProviderRequest) -> bool {
        let entry = || (request.clone(), provider.user);
        let dispatchers = self.lock();
        let known = dispatchers.get(&provider.name);
        known.is_some_and(|known| known.requests.try_send(entry()).is_ok())
    }
}

impl Jobs {
    /// Sends a request to a provider, on whichever node its sockets are.
    pub(super) fn dispatch(self: &Arc<Self>, provider: &Arc<Provider>, request: ProviderRequest) {
        metrics::dispatch();
        if provider.name.is_internal() {
            self.run_internal(provider.clone(), request);
            return;
        }
        let wake = Wait::Requests(provider.name.clone()).wake();
        if self.dispatchers.take(provider, &request) {
            self.bus.wake_others(&[wake]);
        } else {
            self.bus.wake(&[wake]);
        }
    }

    pub(super) fn provider_joins(
        self: &Arc<Self>,
        name: FullName,
        socket: SocketId,
        caller: Caller,
    ) {
        let wake = Wait::Requests(name.clone()).wake();
        let mut dispatchers = self.dispatchers.lock();
        let known = dispatchers.entry(name.clone()).or_insert_with(|| {
            let (requests, arriving) = mpsc::channel(MAX_REQUESTS);
            let joined = Arc::new(NewListeners::default());
            tokio::spawn(self.clone().run_dispatcher(name, arriving, joined.clone()));
            Dispatcher { requests, joined }
        });
        known.joined.lock().push(Listener { socket, caller });
        self.engine.wake(&wake, Cause::Notify);
    }

    pub(super) fn provider_leaves(&self, name: &FullName) {
        self.dispatchers.lock().remove(name);
    }

    /// Until the last socket has left, or the engine drains.
    async fn run_dispatcher(
        self: Arc<Self>,
        name: FullName,
        mut arriving: mpsc::Receiver<(ProviderRequest, Uuid)>,
        joined: Arc<NewListeners>,
    ) {
        let key = Wait::Requests(name.clone()).key();
        let state = AsyncMutex::new(DispatchState::new(name));
        let send_asked = async {
            while let Some((request, user)) = arriving.recv().await {
                let mut state = state.lock().await;
                if state.sent.insert(request.token) {
                    self.send(&mut state, &request, user);
                }
                if state.sent.len() > state.most {
                    let wake = Wait::Requests(state.name.clone()).wake();
                    self.engine.wake(&wake, Cause::Notify);
                }
            }
        };
        tokio::select! {
            () = send_asked => {}
            () = self.send_stored(&key, &state, &joined) => {}
        }
    }

    /// Sends the requests that are in the store: from other nodes, or from before.
    async fn send_stored(
        &self,
        key: &WaitKey,
        state: &AsyncMutex<DispatchState>,
        joined: &NewListeners,
    ) {
        let keys = std::slice::from_ref(key);
        loop {
            let hold = Hold {
                engine: &self.engine,
                keys,
                recheck_keys: keys,
                time: LONG,
            };
            let held: Result<HoldEnd<Infallible>, HoldError<Infallible>> = hold
                .until(async |_| {
                    let mut state = state.lock().await;
                    state.welcome(std::mem::take(&mut *joined.lock()));
                    let recheck_after = self.send_unsent(&mut state).await.err();
                    let recheck_after = recheck_after.map(|error| {
                        // The new sockets stay new, and are sent the requests then.
                        tracing::debug!(%error, "the requests to a provider could not be read");
                        OUTAGE_PAUSE
                    });
                    Ok(CheckResult::Nothing { recheck_after })
                })
                .await;
            match held {
                Ok(_) => {}
                Err(HoldError::Refused(HoldRefusal::Draining)) => return,
                Err(_) => sleep(OUTAGE_PAUSE).await,
            }
        }
    }

    /// To each socket by itself and not to the room: a socket that has just joined is sent all open
    /// requests when its turn comes, and must not get some of them twice.
    fn send(&self, state: &mut DispatchState, request: &ProviderRequest, user: Uuid) {
        state
            .sockets
            .retain(|listener| self.sockets.is_in(listener.socket, &state.room));
        self.send_to(&state.sockets, &state.name, request, user);
    }

    fn send_to(
        &self,
        listeners: &[Listener],
        name: &FullName,
        request: &ProviderRequest,
        user: Uuid,
    ) {
        let payload = provider_request(name, request);
        let its = listeners.iter();
        for listener in its.filter(|listener| listener.caller.may_answer_for(user)) {
            self.sockets
                .send(listener.socket, PROVIDER_REQUEST, &payload);
        }
    }

    /// Sends the old sockets what they have not been sent, and new sockets all open requests.
    async fn send_unsent(&self, state: &mut DispatchState) -> Result<(), wakeline_store::Error> {
        if state.sockets.is_empty() && state.newcomers.is_empty() {
            return Ok(());
        }
        let OpenRequests { user, requests } = self.unanswered(&state.name).await?;
        for request in &requests {
            if !state.sent.contains(&request.token) {
                self.send(state, request, user);
            }
            self.send_to(&state.newcomers, &state.name, request, user);
        }
        state.sockets.append(&mut state.newcomers);
        state.keep(&requests);
        Ok(())
    }

    async fn unanswered(&self, name: &FullName) -> Result<OpenRequests, wakeline_store::Error> {
        let found = self.store.find_providers(vec![name.clone()]).await?;
        let Some(provider) = found.into_iter().flatten().next() else {
            return Ok(OpenRequests {
                user: Uuid::nil(),
                requests: Vec::new(),
            });
        };
        let results = self.results.of(&name.category);
        Ok(OpenRequests {
            user: provider.user,
            requests: results.in_flight(provider.id, provider.version).await?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::AnswerKey;

    fn requests(count: usize) -> Vec<ProviderRequest> {
        let request = |_| ProviderRequest {
            key: AnswerKey {
                provider: Uuid::nil(),
                version: 1,
                hash: String::new(),
            },
            token: Uuid::new_v4(),
            params: String::new(),
        };
        (0..count).map(request).collect()
    }

    #[test]
    fn answered_requests_are_forgotten_unless_the_list_was_cut() {
        let mut state = DispatchState::new(FullName::new("r", "fs", "a"));
        let old = requests(3);
        state.keep(&old);
        state.keep(&requests(2));
        assert_eq!(state.sent.len(), 2);
        state.keep(&old);
        // The old ones are open still, and not among the first ten thousand.
        state.keep(&requests(MAX_IN_FLIGHT));
        assert!(
            old.iter()
                .all(|request| state.sent.contains(&request.token))
        );
        state.keep(&[]);
        assert!(state.sent.is_empty());
    }
}
