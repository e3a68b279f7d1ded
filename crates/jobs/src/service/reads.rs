//! A read of a provider: answered from the stored answers, or held until the provider has answered.
//!
//! However many readers want the same, on however many nodes, the provider gets one request: a
//! reader that finds neither an answer nor an in-flight lock tries to set the lock, and only one
//! succeeds.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_web::{CheckResult, Timing, hold};

use super::{
    Jobs, OUTAGE_PAUSE,
    providers::not_found,
    readers::{ReaderGuard, Readers, RequestSender},
};
use crate::{
    caller::Caller,
    coalesce::Coalescer,
    error::Error,
    frames::GroupAbandoned,
    name::FullName,
    params::{Params, hash},
    problem,
    provider::{Answer, AnswerKey, Provider, ProviderRequest},
    results::{AnswerState, ResultBackend, by_category::ResultsByCategory},
    store::Store,
    topic::{self, Wait},
};

/// A provider and the hash of a request to it. Shared, because a held reader keeps it in several
/// places.
pub(super) type RequestKey = Arc<(FullName, String)>;

/// A provider and the state of its answer to a request.
#[derive(Clone, Debug)]
struct ProviderAnswerState {
    provider: Arc<Provider>,
    state: AnswerState,
}

/// An answer, and the provider that gave it.
#[derive(Debug)]
pub struct ProviderAnswer {
    pub provider: Arc<Provider>,
    pub answer: Answer,
}

/// A read that was answered.
#[derive(Debug)]
pub struct AnsweredRead {
    pub found: ProviderAnswer,
    /// `None`: the answer was there.
    pub timing: Option<Timing>,
}

/// A read after its first query.
pub enum ReadStart {
    Answered(AnsweredRead),
    /// The future keeps only what it needs, because a read may be held for long.
    Held(BoxFuture<'static, Result<AnsweredRead, Error>>),
}

impl ReadStart {
    pub async fn end(self) -> Result<AnsweredRead, Error> {
        match self {
            Self::Answered(read) => Ok(read),
            Self::Held(held) => held.await,
        }
    }
}

impl fmt::Debug for ReadStart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_held = matches!(self, Self::Held(_));
        out.debug_struct("ReadStart")
            .field("held", &is_held)
            .finish()
    }
}

#[derive(Debug)]
pub(super) struct Reads {
    coalescer: Arc<Coalescer<RequestKey, Option<ProviderAnswerState>>>,
    pub(super) readers: Readers,
}

impl Reads {
    pub(super) fn new(store: Arc<dyn Store>, results: Arc<ResultsByCategory>) -> Self {
        let look = move |request_keys: Vec<RequestKey>| {
            let (store, results) = (store.clone(), results.clone());
            async move { look(&*store, &results, &request_keys).await }.boxed()
        };
        Self {
            coalescer: Coalescer::new(look),
            readers: Readers::default(),
        }
    }
}

/// A backend, the indexes of the requests that it has to answer, and their keys.
type BackendKeys<'a> = (&'a Arc<dyn ResultBackend>, Vec<usize>, Vec<AnswerKey>);

/// One query to the store, and one to each other backend.
async fn look(
    store: &dyn Store,
    results: &ResultsByCategory,
    request_keys: &[RequestKey],
) -> Result<Vec<Option<ProviderAnswerState>>, wakeline_store::Error> {
    let mut seen: Vec<Option<ProviderAnswerState>> = vec![None; request_keys.len()];
    let (here, elsewhere): (Vec<usize>, Vec<usize>) = (0..request_keys.len())
        .partition(|index| results.of(&request_keys[*index].0.category).is_store());
    if !here.is_empty() {
        let asked = here
            .iter()
            .map(|index| (*request_keys[*index]).clone())
            .collect();
        for (index, found) in here.into_iter().zip(store.find_answers(asked).await?) {
            seen[index] = found.map(|(provider, state)| ProviderAnswerState {
                provider: Arc::new(provider),
                state,
            });
        }
    }
    if !elsewhere.is_empty() {
        look_elsewhere(store, results, request_keys, elsewhere, &mut seen).await?;
    }
    Ok(seen)
}

async fn look_elsewhere(
    store: &dyn Store,
    results: &ResultsByCategory,
    request_keys: &[RequestKey],
    wanted: Vec<usize>,
    seen: &mut [Option<ProviderAnswerState>],
) -> Result<(), wakeline_store::Error> {
    let names = wanted.iter().map(|index| request_keys[*index].0.clone());
    let providers = store.find_providers(names.collect()).await?;
    let mut by_place: Vec<BackendKeys<'_>> = Vec::new();
    for (index, provider) in wanted.into_iter().zip(providers) {
        let Some(provider) = provider else {
            continue;
        };
        let (name, hash) = &*request_keys[index];
        let key = AnswerKey {
            provider: provider.id,
            version: provider.version,
            hash: hash.clone(),
        };
        seen[index] = Some(ProviderAnswerState {
            provider: Arc::new(provider),
            state: AnswerState::default(),
        });
        let place = results.of(&name.category);
        match by_place
            .iter_mut()
            .find(|(known, ..)| Arc::ptr_eq(known, place))
        {
            Some((_, indexes, keys)) => {
                indexes.push(index);
                keys.push(key);
            }
            None => by_place.push((place, vec![index], vec![key])),
        }
    }
    for (place, indexes, keys) in by_place {
        for (index, look) in indexes.into_iter().zip(place.get(keys).await?) {
            if let Some(found) = &mut seen[index] {
                found.state = look;
            }
        }
    }
    Ok(())
}

impl Jobs {
    /// Reads what `name` names from `room`, held for at most `time`.
    pub async fn read(
        self: &Arc<Self>,
        caller: Caller,
        room: &str,
        name: &str,
        params: Params,
        time: Duration,
    ) -> Result<ReadStart, Error> {
        let mut names = self.name_in(room, name)?;
        if names.len() > 1 {
            let found = self.store.find_providers(names).await?;
            let provider = found.into_iter().flatten().next();
            names = vec![provider.ok_or_else(|| not_found(name))?.name];
        }
        let named = names.pop().ok_or_else(|| not_found(name))?;
        let alone = GroupAbandoned::default();
        self.read_provider(caller, named, name, params, time, alone)
            .await
    }

    pub(super) async fn read_provider(
        self: &Arc<Self>,
        caller: Caller,
        named: FullName,
        as_asked: &str,
        params: Params,
        time: Duration,
        group: GroupAbandoned,
    ) -> Result<ReadStart, Error> {
        let text = params.text();
        let request_key = Arc::new((named, hash(&text)));
        let seen = self.reads.coalescer.ask(request_key.clone()).await?;
        let ProviderAnswerState { provider, state } = seen.ok_or_else(|| not_found(as_asked))?;
        self.may_read(Some(caller), &provider)?;
        if let Some(answer) = state.answer {
            return Ok(ReadStart::Answered(AnsweredRead {
                found: ProviderAnswer { provider, answer },
                timing: None,
            }));
        }
        params.check(&self.schemas.get(&provider))?;
        if provider.name.is_internal() {
            self.check_internal(&provider.name)?;
        }
        let held = self.clone().held(request_key, text, time, group);
        Ok(ReadStart::Held(held.boxed()))
    }

    async fn held(
        self: Arc<Self>,
        request_key: RequestKey,
        text: String,
        time: Duration,
        group: GroupAbandoned,
    ) -> Result<AnsweredRead, Error> {
        let reading = ReaderGuard::enter(&self, &request_key, group);
        let (name, hash) = (*request_key).clone();
        let places = [
            Wait::Result(name.clone(), hash).key(),
            Wait::Provider(name).key(),
        ];
        let text: Arc<str> = text.into();
        let check = || {
            let (door, request_key, text) = (self.clone(), request_key.clone(), text.clone());
            async move { door.look_for_answer(&request_key, &text).await }
        };
        let held = hold(&self.engine, topic::DOOR, &places, time, check).await?;
        reading.disarm();
        match held.value {
            Some(found) => Ok(AnsweredRead {
                found,
                timing: Some(held.timing),
            }),
            None => {
                let error = self.not_answered(&request_key.0, time).await;
                Err(error.held(held.timing))
            }
        }
    }

    /// A held reader rides out that the provider or the store is away.
    async fn look_for_answer(
        self: Arc<Self>,
        request_key: &RequestKey,
        text: &str,
    ) -> Result<CheckResult<ProviderAnswer>, Error> {
        let seen = match self.reads.coalescer.ask(request_key.clone()).await {
            Ok(Some(seen)) => seen,
            Ok(None) => {
                return Ok(CheckResult::Nothing {
                    recheck_after: None,
                });
            }
            Err(error) if error.is_outage() => {
                return Ok(CheckResult::Nothing {
                    recheck_after: Some(OUTAGE_PAUSE),
                });
            }
            Err(error) => return Err(error.into()),
        };
        let ProviderAnswerState { provider, state } = seen;
        if let Some(answer) = state.answer {
            return Ok(CheckResult::Found(ProviderAnswer { provider, answer }));
        }
        let recheck_after = match state.in_flight {
            // When the lock expires, the request is sent again.
            Some(left) => left,
            None => self.ask(request_key, &provider, text).await,
        };
        Ok(CheckResult::Nothing {
            recheck_after: Some(recheck_after),
        })
    }

    /// Sets the lock and sends the request, unless another reader does. Returns when to check
    /// again.
    async fn ask(
        self: &Arc<Self>,
        request_key: &RequestKey,
        provider: &Arc<Provider>,
        text: &str,
    ) -> Duration {
        let request = ProviderRequest {
            key: AnswerKey {
                provider: provider.id,
                version: provider.version,
                hash: request_key.1.clone(),
            },
            token: Uuid::new_v4(),
            params: text.to_owned(),
        };
        let Some(sender) =
            RequestSender::enter(self, request_key, (request.key.clone(), request.token))
        else {
            return OUTAGE_PAUSE;
        };
        let (door, provider, request_key) = (self.clone(), provider.clone(), request_key.clone());
        let results = self.results.of(&provider.name.category);
        let ttl = self.settings.inflight_ttl;
        let begun = results.begin(request.clone(), ttl);
        let begun =
            begun.then(
                async move |is_locked| match (is_locked, sender.finish(is_locked)) {
                    (true, true) => door.dispatch(&provider, request),
                    (true, false) => {
                        let unask = door.unask(&request_key, request.key, request.token);
                        if let Err(error) = unask.commit(&door.bus).await {
                            tracing::debug!(%error, "the lock on a request stays until it expires");
                        }
                    }
                    (false, _) => {}
                },
            );
        match begun.commit(&self.bus).await {
            Ok(()) => ttl,
            Err(error) => {
                tracing::debug!(%error, "a request to a provider could not be locked; trying again");
                OUTAGE_PAUSE
            }
        }
    }

    /// Releases the lock, and wakes the readers that wait for its request, here and on other nodes:
    /// one of them sends the request.
    pub(super) fn unask(&self, request_key: &RequestKey, key: AnswerKey, token: Uuid) -> Write<()> {
        let (name, hash) = (**request_key).clone();
        let readers = Wait::Result(name, hash).wake().into();
        self.unmark(request_key, key, token, readers)
    }

    pub(super) fn unmark(
        &self,
        request_key: &RequestKey,
        key: AnswerKey,
        token: Uuid,
        readers: Wakes,
    ) -> Write<()> {
        let results = self.results.of(&request_key.0.category);
        results.end(key, Some(token), readers)
    }

    async fn not_answered(&self, name: &FullName, time: Duration) -> Error {
        match self.store.find_providers(vec![name.clone()]).await {
            Ok(found) if found.iter().all(Option::is_none) => not_found(&name.to_string()),
            Err(error) => error.into(),
            Ok(_) => {
                let kind = if self.settings.timeout_is_not_found {
                    &problem::PROVIDER_TIMEOUT_AS_NOT_FOUND
                } else {
                    &problem::PROVIDER_TIMEOUT
                };
                let seconds = time.as_secs_f64();
                Error::problem(
                    kind,
                    format!("Provider '{name}' did not respond within {seconds}s"),
                )
            }
        }
    }
}
