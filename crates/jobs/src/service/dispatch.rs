//! Questions on their way to providers.
//!
//! On each node that has sockets of a provider a task waits for questions to it, as any reader waits
//! for its answer. A question that was asked before the provider came, or while the line to it was
//! down, is in the store and is sent when it comes.

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
    name::FullName,
    provider::{Provider, Request},
    results::MAX_IN_FLIGHT,
    socket::SocketId,
    topic::Wait,
};

/// Questions that may wait for one provider's task; one past it is found in the store.
const MAX_QUESTIONS: usize = 1_024;
/// From so many on that are known to be sent, it is looked which of them are answered.
const MANY_SENT: usize = 1_024;
/// A dispatcher's place in the engine is taken anew after so long.
const LONG: Duration = Duration::from_secs(24 * 3_600);

/// The providers that have sockets here.
#[derive(Debug, Default)]
pub(super) struct Dispatchers(Mutex<HashMap<FullName, Dispatcher>>);

#[derive(Debug)]
struct Dispatcher {
    /// With the user whose provider is asked.
    questions: mpsc::Sender<(Request, Uuid)>,
    joined: Arc<Newcomers>,
}

/// Sockets that have been told nothing yet. Not in the line of questions, which may be full: a
/// socket that is forgotten here is deaf.
#[derive(Debug, Default)]
struct Newcomers(Mutex<Vec<Listener>>);

/// A socket, and who it is: a provider can become another user's while its sockets stay.
#[derive(Clone, Copy, Debug)]
struct Listener {
    socket: SocketId,
    caller: Caller,
}

/// Who has been told what.
#[derive(Debug)]
struct Told {
    name: FullName,
    room: String,
    sockets: Vec<Listener>,
    newcomers: Vec<Listener>,
    sent: HashSet<Uuid>,
    /// How many may have been sent before it is looked which are answered.
    most: usize,
}

/// What a provider has been asked and not answered, and whose it is.
struct Open {
    user: Uuid,
    requests: Vec<Request>,
}

impl Told {
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

    /// One that has left and joined again is a newcomer, and not there twice.
    fn welcome(&mut self, joined: Vec<Listener>) {
        for new in joined {
            self.sockets.retain(|known| known.socket != new.socket);
            self.newcomers.retain(|known| known.socket != new.socket);
            self.newcomers.push(new);
        }
    }

    /// What was sent and is answered by now is forgotten; unless there is more open than was told.
    fn keep(&mut self, open: &[Request]) {
        let tokens = open.iter().map(|request| request.token);
        if open.len() < MAX_IN_FLIGHT {
            self.sent = tokens.collect();
        } else {
            self.sent.extend(tokens);
        }
        self.most = MANY_SENT.max(2 * self.sent.len());
    }
}

impl Newcomers {
    fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dispatchers {
    fn lock(&self) -> MutexGuard<'_, HashMap<FullName, Dispatcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody here sends it on.
    fn take(&self, provider: &Provider, request: &Request) -> bool {
        let question = || (request.clone(), provider.user);
        let dispatchers = self.lock();
        let known = dispatchers.get(&provider.name);
        known.is_some_and(|known| known.questions.try_send(question()).is_ok())
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
        if self.dispatchers.take(provider, &request) {
            self.bus.publish_elsewhere(&[wake]);
        } else {
            self.bus.publish(&[wake]);
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
            let (questions, asked) = mpsc::channel(MAX_QUESTIONS);
            let joined = Arc::new(Newcomers::default());
            tokio::spawn(self.clone().run_dispatcher(name, asked, joined.clone()));
            Dispatcher { questions, joined }
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
        mut asked: mpsc::Receiver<(Request, Uuid)>,
        joined: Arc<Newcomers>,
    ) {
        let key = Wait::Requests(name.clone()).key();
        let told = AsyncMutex::new(Told::new(name));
        let send_asked = async {
            while let Some((request, user)) = asked.recv().await {
                let mut told = told.lock().await;
                if told.sent.insert(request.token) {
                    self.send(&mut told, &request, user);
                }
                if told.sent.len() > told.most {
                    let wake = Wait::Requests(told.name.clone()).wake();
                    self.engine.wake(&wake, Cause::Notify);
                }
            }
        };
        tokio::select! {
            () = send_asked => {}
            () = self.send_stored(&key, &told, &joined) => {}
        }
    }

    /// What is asked elsewhere, or was asked before, is in the store.
    async fn send_stored(&self, key: &WaitKey, told: &AsyncMutex<Told>, joined: &Newcomers) {
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
                    let mut told = told.lock().await;
                    told.welcome(std::mem::take(&mut *joined.lock()));
                    let recheck_after = self.send_unsent(&mut told).await.err();
                    let recheck_after = recheck_after.map(|error| {
                        // The newcomers stay what they are, and are sent it then.
                        tracing::debug!(%error, "questions for a provider could not be read");
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

    /// To each socket by itself and not to the room: one that has just joined is sent everything
    /// when its turn comes, and must not have some of it twice.
    fn send(&self, told: &mut Told, request: &Request, user: Uuid) {
        told.sockets
            .retain(|listener| self.sockets.is_in(listener.socket, &told.room));
        self.send_to(&told.sockets, &told.name, request, user);
    }

    fn send_to(&self, listeners: &[Listener], name: &FullName, request: &Request, user: Uuid) {
        let payload = provider_request(name, request);
        let its = listeners.iter();
        for listener in its.filter(|listener| listener.caller.may_answer_for(user)) {
            self.sockets
                .send(listener.socket, PROVIDER_REQUEST, &payload);
        }
    }

    /// To those who were there what they have not been sent, to newcomers all that is open.
    async fn send_unsent(&self, told: &mut Told) -> Result<(), wakeline_store::Error> {
        if told.sockets.is_empty() && told.newcomers.is_empty() {
            return Ok(());
        }
        let Open { user, requests } = self.unanswered(&told.name).await?;
        for request in &requests {
            if !told.sent.contains(&request.token) {
                self.send(told, request, user);
            }
            self.send_to(&told.newcomers, &told.name, request, user);
        }
        told.sockets.append(&mut told.newcomers);
        told.keep(&requests);
        Ok(())
    }

    async fn unanswered(&self, name: &FullName) -> Result<Open, wakeline_store::Error> {
        let found = self.store.find_providers(vec![name.clone()]).await?;
        let Some(provider) = found.into_iter().flatten().next() else {
            return Ok(Open {
                user: Uuid::nil(),
                requests: Vec::new(),
            });
        };
        let results = self.results.of(&name.category);
        Ok(Open {
            user: provider.user,
            requests: results.in_flight(provider.id, provider.version).await?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Key;

    fn requests(count: usize) -> Vec<Request> {
        let request = |_| Request {
            key: Key {
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
    fn what_is_answered_is_forgotten_unless_not_all_was_told() {
        let mut told = Told::new(FullName::new("r", "fs", "a"));
        let old = requests(3);
        told.keep(&old);
        told.keep(&requests(2));
        assert_eq!(told.sent.len(), 2);
        told.keep(&old);
        // The old ones are open still, and not among the first ten thousand.
        told.keep(&requests(MAX_IN_FLIGHT));
        assert!(old.iter().all(|request| told.sent.contains(&request.token)));
        told.keep(&[]);
        assert!(told.sent.is_empty());
    }
}
