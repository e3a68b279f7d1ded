//! The rest of the door, as far as frames see it: one provider's answers in memory, and a record of
//! what was asked, told and heard.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use serde_json::Value;
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use uuid::Uuid;
use wakeline_jobs::{
    Error,
    caller::Caller,
    frames::{FailedReads, GroupAbandoned, ProviderReads, RoomEvents},
    name::FullName,
    problem,
    provider::{Answer, AnswerBody, Provider},
};
use wakeline_wake::Cause;
use wakeline_web::Timing;

/// How long something may take that is certain to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A provider, and its parameters.
type Question = (String, Vec<(String, String)>);

#[derive(Debug, Default)]
pub(crate) struct FakePorts {
    /// The newest last.
    pub(crate) providers: Mutex<Vec<Provider>>,
    answers: watch::Sender<BTreeMap<i64, Answer>>,
    pub(crate) asked: Mutex<Vec<Question>>,
    at_once: AtomicUsize,
    /// The most that were under way.
    pub(crate) most_at_once: AtomicUsize,
    told: watch::Sender<Vec<(String, String, Value)>>,
    pub(crate) heard: Mutex<Vec<[String; 4]>>,
}

pub(crate) fn provider(room: &str, name: &str, user: Uuid) -> Provider {
    Provider {
        id: Uuid::new_v4(),
        name: FullName::new(room, "frames", name),
        schema: "{}".to_owned(),
        content_type: "application/x-msgpack".to_owned(),
        user,
        worker: Some(Uuid::new_v4()),
        created_at: 0,
        version: 1,
        ttl: None,
    }
}

pub(crate) fn answer(is_error: bool, body: impl Into<bytes::Bytes>) -> Answer {
    Answer {
        is_error,
        body: AnswerBody::Bytes(body.into()),
        etag: "\"\"".to_owned(),
    }
}

impl FakePorts {
    pub(crate) fn register(&self, provider: Provider) {
        self.providers.lock().unwrap().push(provider);
    }

    pub(crate) fn unregister(&self, room: &str, name: &str) {
        let gone = FullName::new(room, "frames", name);
        let mut providers = self.providers.lock().unwrap();
        providers.retain(|provider| provider.name != gone);
    }

    pub(crate) fn answer(&self, number: i64, answer: Answer) {
        self.answers.send_modify(|answers| {
            answers.insert(number, answer);
        });
    }

    /// What was told since the last time.
    pub(crate) fn told(&self) -> Vec<(String, String, Value)> {
        let mut told = Vec::new();
        self.told.send_modify(|all| told = std::mem::take(all));
        told
    }

    /// Until so much was told.
    pub(crate) async fn wait_told(&self, count: usize) -> Vec<(String, String, Value)> {
        let mut told = self.told.subscribe();
        let told = told.wait_for(|told| told.len() >= count);
        let told = timeout(PATIENCE, told).await.expect("it was not told");
        told.unwrap().clone()
    }

    /// Until so many questions have come.
    pub(crate) async fn wait_asked(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.asked.lock().unwrap().len() < count {
            assert!(Instant::now() < deadline, "it was not asked");
            tokio::task::yield_now().await;
        }
    }
}

struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ProviderReads for FakePorts {
    fn ask(
        &self,
        _: Caller,
        provider: Provider,
        params: Vec<(String, String)>,
        wait: Duration,
        _: GroupAbandoned,
    ) -> BoxFuture<'_, Result<(Answer, Option<Timing>), Error>> {
        async move {
            let since = Instant::now();
            let under_way = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            let _under_way = UnderWay(&self.at_once);
            self.most_at_once.fetch_max(under_way, Ordering::SeqCst);
            let number: i64 = params[0].1.parse().unwrap();
            let name = provider.name.to_string();
            self.asked.lock().unwrap().push((name.clone(), params));
            // Others have their turn, as they have while a real provider thinks.
            tokio::task::yield_now().await;
            let mut answers = self.answers.subscribe();
            let answered = answers.wait_for(|answers| answers.contains_key(&number));
            match timeout_at(Instant::now() + wait, answered).await {
                Ok(answers) => {
                    let timing = Timing {
                        hold: since.elapsed(),
                        woken_by: Some(Cause::Notify),
                        store: Duration::ZERO,
                    };
                    Ok((answers.unwrap()[&number].clone(), Some(timing)))
                }
                Err(_) => Err(Error::problem(
                    &problem::PROVIDER_TIMEOUT,
                    format!(
                        "Provider '{name}' did not respond within {}s",
                        wait.as_secs()
                    ),
                )),
            }
        }
        .boxed()
    }

    fn frames_provider(&self, room: &str) -> BoxFuture<'_, Result<Option<Provider>, Error>> {
        let providers = self.providers.lock().unwrap();
        let newest = providers.iter().rev();
        let newest = newest.clone().find(|provider| provider.name.room == room);
        let newest = newest.cloned();
        async move { Ok(newest) }.boxed()
    }
}

impl RoomEvents for FakePorts {
    fn emit(&self, room_name: &str, event: &str, payload: Value) {
        let told = (room_name.to_owned(), event.to_owned(), payload);
        self.told.send_modify(|all| all.push(told));
    }
}

impl FailedReads for FakePorts {
    fn read_failed(
        &self,
        room: &str,
        provider: &str,
        hash: &str,
        detail: &str,
        _: Caller,
    ) -> BoxFuture<'_, ()> {
        let heard = [room, provider, hash, detail].map(str::to_owned);
        self.heard.lock().unwrap().push(heard);
        async {}.boxed()
    }
}
