//! A read of a provider: answered from what is kept, or held until the provider has answered.
//!
//! However many ask the same, on however many nodes, the provider is asked once: whoever finds
//! neither an answer nor a mark that it was asked puts the mark there, and only one can.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_web::{Checked, Timing, hold};

use super::{Jobs, OUTAGE_PAUSE, providers::not_found};
use crate::{
    caller::Caller,
    error::Error,
    gather::Gather,
    name::FullName,
    params::{Params, hash},
    problem,
    provider::{Answer, Key, Provider, Request},
    results::{Look, Results, choice::Choice},
    store::Store,
    topic::{self, Wait},
};

/// A provider, and the hash of what it is asked.
type Question = (FullName, String);

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

#[derive(Debug)]
pub(super) struct Reads {
    gather: Arc<Gather<Question, Option<Seen>>>,
    readers: Arc<Readers>,
}

impl Reads {
    pub(super) fn new(store: Arc<dyn Store>, results: Arc<Choice>) -> Self {
        let look = move |questions: Vec<Question>| {
            let (store, results) = (store.clone(), results.clone());
            async move { look(&*store, &results, &questions).await }.boxed()
        };
        Self {
            gather: Gather::new(look),
            readers: Arc::default(),
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
        let asked = here.iter().map(|index| questions[*index].clone()).collect();
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
        let (name, hash) = &questions[index];
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
    ) -> Result<Read, Error> {
        let mut names = self.name_in(room, name)?;
        if names.len() > 1 {
            let found = self.store.find_providers(names).await?;
            let provider = found.into_iter().flatten().next();
            names = vec![provider.ok_or_else(|| not_found(name))?.name];
        }
        let named = names.pop().ok_or_else(|| not_found(name))?;
        self.read_provider(caller, named, name, params, time).await
    }

    pub(super) async fn read_provider(
        self: &Arc<Self>,
        caller: Caller,
        named: FullName,
        as_asked: &str,
        params: Params,
        time: Duration,
    ) -> Result<Read, Error> {
        let text = params.text();
        let question = (named, hash(&text));
        let seen = self.reads.gather.ask(question.clone()).await?;
        let Seen { provider, look } = seen.ok_or_else(|| not_found(as_asked))?;
        self.may_read(Some(caller), &provider)?;
        if let Some(answer) = look.answer {
            return Ok(Read {
                found: Found { provider, answer },
                timing: None,
            });
        }
        params.check(&provider.schema)?;
        if provider.name.is_internal() {
            self.check_internal(&provider.name)?;
        }
        // Its size is kept for as long as it is held, and by nobody else.
        Box::pin(self.held(question, text, time)).await
    }

    async fn held(
        self: &Arc<Self>,
        question: Question,
        text: String,
        time: Duration,
    ) -> Result<Read, Error> {
        let reading = Reading::enter(self, &question);
        let (name, hash) = question.clone();
        let places = [
            Wait::Result(name.clone(), hash).place(),
            Wait::Provider(name).place(),
        ];
        let (question, text) = (Arc::new(question), Arc::new(text));
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
            None => Err(self.not_answered(&question.0, time).await),
        }
    }

    /// Whoever is held sits out that the provider or the store is away.
    async fn look_for_answer(
        self: Arc<Self>,
        question: &Question,
        text: &str,
    ) -> Result<Checked<Found>, Error> {
        let seen = match self.reads.gather.ask(question.clone()).await {
            Ok(Some(seen)) => seen,
            Ok(None) => return Ok(Checked::Nothing { again: None }),
            Err(error) if error.is_outage() => {
                return Ok(Checked::Nothing {
                    again: Some(OUTAGE_PAUSE),
                });
            }
            Err(error) => return Err(error.into()),
        };
        let Seen { provider, look } = seen;
        if let Some(answer) = look.answer {
            return Ok(Checked::Found(Found { provider, answer }));
        }
        let again = match look.in_flight {
            // When the mark is over, the provider is asked again.
            Some(left) => left,
            None => self.ask(question, &provider, text).await,
        };
        Ok(Checked::Nothing { again: Some(again) })
    }

    /// Puts the mark there and asks, unless somebody else does. When to look again.
    async fn ask(
        self: &Arc<Self>,
        question: &Question,
        provider: &Arc<Provider>,
        text: &str,
    ) -> Duration {
        if !self.reads.readers.begins(question) {
            return OUTAGE_PAUSE;
        }
        let request = Request {
            key: Key {
                provider: provider.id,
                version: provider.version,
                hash: question.1.clone(),
            },
            token: Uuid::new_v4(),
            params: text.to_owned(),
        };
        let (door, provider, question) = (self.clone(), provider.clone(), question.clone());
        // In a task of its own: a mark must not be left behind by somebody who hangs up meanwhile.
        let asking = tokio::spawn(async move {
            let results = door.results.of(&provider.name.category);
            let ttl = door.settings.inflight_ttl;
            let begun = results.begin(request.clone(), ttl).await;
            let mark = (request.key.clone(), request.token);
            let is_mine = matches!(begun, Ok(true));
            let is_wanted = door.reads.readers.begun(&question, is_mine.then_some(mark));
            match begun {
                Ok(true) if is_wanted => {
                    door.dispatch(&provider, request);
                    ttl
                }
                Ok(true) => {
                    door.unask(request.key, request.token).await;
                    ttl
                }
                Ok(false) => ttl,
                Err(error) => {
                    tracing::debug!(%error, "a provider could not be asked; trying again");
                    OUTAGE_PAUSE
                }
            }
        });
        asking.await.unwrap_or(OUTAGE_PAUSE)
    }

    async fn unask(&self, key: Key, token: Uuid) {
        for results in self.results.places() {
            if let Err(error) = results.end(key.clone(), Some(token)).await {
                tracing::debug!(%error, "a mark stays until its time is over");
            }
        }
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

/// Who reads what on this node, so that of a hundred only one asks, and the last one who hangs up
/// takes the mark along.
#[derive(Debug, Default)]
struct Readers(Mutex<HashMap<Question, Reader>>);

#[derive(Debug, Default)]
struct Reader {
    count: usize,
    is_beginning: bool,
    mark: Option<(Key, Uuid)>,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, HashMap<Question, Reader>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller is the one to ask.
    fn begins(&self, question: &Question) -> bool {
        match self.lock().get_mut(question) {
            Some(reader) => !std::mem::replace(&mut reader.is_beginning, true),
            None => false,
        }
    }

    /// Whether anybody still wants to know.
    fn begun(&self, question: &Question, mark: Option<(Key, Uuid)>) -> bool {
        match self.lock().get_mut(question) {
            Some(reader) => {
                reader.is_beginning = false;
                if mark.is_some() {
                    reader.mark = mark;
                }
                true
            }
            None => false,
        }
    }
}

/// One who reads. Dropped before its read ended, it has hung up.
struct Reading {
    door: Arc<Jobs>,
    question: Question,
    has_stayed: bool,
}

impl Reading {
    fn enter(door: &Arc<Jobs>, question: &Question) -> Self {
        let mut readers = door.reads.readers.lock();
        readers.entry(question.clone()).or_default().count += 1;
        drop(readers);
        Self {
            door: door.clone(),
            question: question.clone(),
            has_stayed: false,
        }
    }

    fn stayed(mut self) {
        self.has_stayed = true;
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut readers = self.door.reads.readers.lock();
        let Some(reader) = readers.get_mut(&self.question) else {
            return;
        };
        reader.count -= 1;
        if reader.count > 0 {
            return;
        }
        let mark = readers
            .remove(&self.question)
            .and_then(|reader| reader.mark);
        drop(readers);
        if let Some((key, token)) = mark
            && !self.has_stayed
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let door = self.door.clone();
            runtime.spawn(async move { door.unask(key, token).await });
        }
    }
}
