//! A read of a provider: answered from what is kept, or held until the provider has answered.
//!
//! However many ask the same, on however many nodes, the provider is asked once: whoever finds
//! neither an answer nor a mark that it was asked puts the mark there, and only one can.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_web::{CheckResult, Timing, hold};

use super::{
    Jobs, OUTAGE_PAUSE,
    providers::not_found,
    readers::{Asker, Readers, Reading},
};
use crate::{
    caller::Caller,
    error::Error,
    frames::Together,
    gather::Gather,
    name::FullName,
    params::{Params, hash},
    problem,
    provider::{Answer, Key, Provider, Request},
    results::{Look, Results, choice::Choice},
    store::Store,
    topic::{self, Wait},
};

/// A provider, and the hash of what it is asked. Shared: whoever is held has it in many hands.
pub(super) type Question = Arc<(FullName, String)>;

/// What is known of a question.
#[derive(Clone, Debug)]
struct Seen {
    provider: Arc<Provider>,
    look: Look,
}

/// An answer, and whose it is.
#[derive(Debug)]
pub struct Found {
    pub provider: Arc<Provider>,
    pub answer: Answer,
}

/// A read that was answered.
#[derive(Debug)]
pub struct Read {
    pub found: Found,
    /// `None`: the answer was there.
    pub timing: Option<Timing>,
}

/// A read after its first look.
pub enum Begun {
    Answered(Read),
    /// Whoever awaits it keeps this and nothing else of what has led here.
    Held(BoxFuture<'static, Result<Read, Error>>),
}

impl Begun {
    pub async fn end(self) -> Result<Read, Error> {
        match self {
            Self::Answered(read) => Ok(read),
            Self::Held(held) => held.await,
        }
    }
}

impl fmt::Debug for Begun {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_held = matches!(self, Self::Held(_));
        out.debug_struct("Begun").field("held", &is_held).finish()
    }
}

#[derive(Debug)]
pub(super) struct Reads {
    gather: Arc<Gather<Question, Option<Seen>>>,
    pub(super) readers: Readers,
}

impl Reads {
    pub(super) fn new(store: Arc<dyn Store>, results: Arc<Choice>) -> Self {
        let look = move |questions: Vec<Question>| {
            let (store, results) = (store.clone(), results.clone());
            async move { look(&*store, &results, &questions).await }.boxed()
        };
        Self {
            gather: Gather::new(look),
            readers: Readers::default(),
        }
    }
}

/// A place, the numbers of the questions that it is asked, and what.
type Asked<'a> = (&'a Arc<dyn Results>, Vec<usize>, Vec<Key>);

/// One question to the store, and one to each other place where answers are kept.
async fn look(
    store: &dyn Store,
    results: &Choice,
    questions: &[Question],
) -> Result<Vec<Option<Seen>>, wakeline_store::Error> {
    let mut seen: Vec<Option<Seen>> = vec![None; questions.len()];
    let (here, elsewhere): (Vec<usize>, Vec<usize>) = (0..questions.len())
        .partition(|index| results.of(&questions[*index].0.category).is_store());
    if !here.is_empty() {
        let asked = here
            .iter()
            .map(|index| (*questions[*index]).clone())
            .collect();
        for (index, found) in here.into_iter().zip(store.find_answers(asked).await?) {
            seen[index] = found.map(|(provider, look)| Seen {
                provider: Arc::new(provider),
                look,
            });
        }
    }
    if !elsewhere.is_empty() {
        look_elsewhere(store, results, questions, elsewhere, &mut seen).await?;
    }
    Ok(seen)
}

async fn look_elsewhere(
    store: &dyn Store,
    results: &Choice,
    questions: &[Question],
    wanted: Vec<usize>,
    seen: &mut [Option<Seen>],
) -> Result<(), wakeline_store::Error> {
    let names = wanted.iter().map(|index| questions[*index].0.clone());
    let providers = store.find_providers(names.collect()).await?;
    let mut by_place: Vec<Asked<'_>> = Vec::new();
    for (index, provider) in wanted.into_iter().zip(providers) {
        let Some(provider) = provider else {
            continue;
        };
        let (name, hash) = &*questions[index];
        let key = Key {
            provider: provider.id,
            version: provider.version,
            hash: hash.clone(),
        };
        seen[index] = Some(Seen {
            provider: Arc::new(provider),
            look: Look::default(),
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
        for (index, look) in indexes.into_iter().zip(place.look(keys).await?) {
            if let Some(seen) = &mut seen[index] {
                seen.look = look;
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
    ) -> Result<Begun, Error> {
        let mut names = self.name_in(room, name)?;
        if names.len() > 1 {
            let found = self.store.find_providers(names).await?;
            let provider = found.into_iter().flatten().next();
            names = vec![provider.ok_or_else(|| not_found(name))?.name];
        }
        let named = names.pop().ok_or_else(|| not_found(name))?;
        let alone = Together::default();
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
        together: Together,
    ) -> Result<Begun, Error> {
        let text = params.text();
        let question = Arc::new((named, hash(&text)));
        let seen = self.reads.gather.ask(question.clone()).await?;
        let Seen { provider, look } = seen.ok_or_else(|| not_found(as_asked))?;
        self.may_read(Some(caller), &provider)?;
        if let Some(answer) = look.answer {
            return Ok(Begun::Answered(Read {
                found: Found { provider, answer },
                timing: None,
            }));
        }
        params.check(&self.schemas.get(&provider))?;
        if provider.name.is_internal() {
            self.check_internal(&provider.name)?;
        }
        let held = self.clone().held(question, text, time, together);
        Ok(Begun::Held(held.boxed()))
    }

    async fn held(
        self: Arc<Self>,
        question: Question,
        text: String,
        time: Duration,
        together: Together,
    ) -> Result<Read, Error> {
        let reading = Reading::enter(&self, &question, together);
        let (name, hash) = (*question).clone();
        let places = [
            Wait::Result(name.clone(), hash).key(),
            Wait::Provider(name).key(),
        ];
        let text: Arc<str> = text.into();
        let check = || {
            let (door, question, text) = (self.clone(), question.clone(), text.clone());
            async move { door.look_for_answer(&question, &text).await }
        };
        let held = hold(&self.engine, topic::DOOR, &places, time, check).await?;
        reading.stayed();
        match held.value {
            Some(found) => Ok(Read {
                found,
                timing: Some(held.timing),
            }),
            None => {
                let error = self.not_answered(&question.0, time).await;
                Err(error.held(held.timing))
            }
        }
    }

    /// Whoever is held sits out that the provider or the store is away.
    async fn look_for_answer(
        self: Arc<Self>,
        question: &Question,
        text: &str,
    ) -> Result<CheckResult<Found>, Error> {
        let seen = match self.reads.gather.ask(question.clone()).await {
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
        let Seen { provider, look } = seen;
        if let Some(answer) = look.answer {
            return Ok(CheckResult::Found(Found { provider, answer }));
        }
        let recheck_after = match look.in_flight {
            // When the mark is over, the provider is asked again.
            Some(left) => left,
            None => self.ask(question, &provider, text).await,
        };
        Ok(CheckResult::Nothing {
            recheck_after: Some(recheck_after),
        })
    }

    /// Puts the mark there and asks, unless somebody else does. When to look again.
    async fn ask(
        self: &Arc<Self>,
        question: &Question,
        provider: &Arc<Provider>,
        text: &str,
    ) -> Duration {
        let request = Request {
            key: Key {
                provider: provider.id,
                version: provider.version,
                hash: question.1.clone(),
            },
            token: Uuid::new_v4(),
            params: text.to_owned(),
        };
        let Some(asker) = Asker::enter(self, question, (request.key.clone(), request.token)) else {
            return OUTAGE_PAUSE;
        };
        let (door, provider, question) = (self.clone(), provider.clone(), question.clone());
        let results = self.results.of(&provider.name.category);
        let ttl = self.settings.inflight_ttl;
        let begun = results.begin(request.clone(), ttl);
        let begun = begun.then(
            async move |is_marked| match (is_marked, asker.finish(is_marked)) {
                (true, true) => door.dispatch(&provider, request),
                (true, false) => {
                    let unask = door.unask(&question, request.key, request.token);
                    if let Err(error) = unask.commit(&door.bus).await {
                        tracing::debug!(%error, "a mark stays until its time is over");
                    }
                }
                (false, _) => {}
            },
        );
        match begun.commit(&self.bus).await {
            Ok(()) => ttl,
            Err(error) => {
                tracing::debug!(%error, "a provider could not be asked; trying again");
                OUTAGE_PAUSE
            }
        }
    }

    /// Takes a mark off. Whoever has seen it and waits, here or on another node, asks now.
    pub(super) fn unask(&self, question: &Question, key: Key, token: Uuid) -> Write<()> {
        let (name, hash) = (**question).clone();
        let readers = Wait::Result(name, hash).wake().into();
        self.unmark(question, key, token, readers)
    }

    pub(super) fn unmark(
        &self,
        question: &Question,
        key: Key,
        token: Uuid,
        readers: Wakes,
    ) -> Write<()> {
        let results = self.results.of(&question.0.category);
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
