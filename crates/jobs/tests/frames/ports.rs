//! The ports of the frames in memory: one provider's answers, and a record of
//! the requests, the emitted events and the failed reads.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
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
    frames::{FailedReads, FramesChange, GroupAbandoned, ProviderReads, RoomEvents},
    name::FullName,
    problem,
    provider::{Answer, AnswerBody, Provider},
};
use wakeline_wake::Cause;
use wakeline_web::Timing;

/// How long the test waits for an event that is certain to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// The name of a provider, and the parameters of a request to it.
type ProviderCall = (String, Vec<(String, String)>);

#[derive(Debug, Default)]
pub(crate) struct FakePorts {
    has_company: AtomicBool,
    /// The newest provider is the last.
    pub(crate) providers: Mutex<Vec<Provider>>,
    answers: watch::Sender<BTreeMap<i64, Answer>>,
    pub(crate) requests: Mutex<Vec<ProviderCall>>,
    at_once: AtomicUsize,
    /// The most requests that were under way at once.
    pub(crate) most_at_once: AtomicUsize,
    emitted: watch::Sender<Vec<(String, String, Value)>>,
    pub(crate) failed_reads: Mutex<Vec<[String; 4]>>,
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
    /// Whether there are other nodes.
    pub(crate) fn has_company(&self, is: bool) {
        self.has_company.store(is, Ordering::SeqCst);
    }

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

    /// The events emitted since the last call.
    pub(crate) fn emitted(&self) -> Vec<(String, String, Value)> {
        let mut emitted = Vec::new();
        self.emitted
            .send_modify(|all| emitted = std::mem::take(all));
        emitted
    }

    /// Until `count` events were emitted.
    pub(crate) async fn wait_emitted(&self, count: usize) -> Vec<(String, String, Value)> {
        let mut emitted = self.emitted.subscribe();
        let emitted = emitted.wait_for(|emitted| emitted.len() >= count);
        let emitted = timeout(PATIENCE, emitted)
            .await
            .expect("too few events were emitted");
        emitted.unwrap().clone()
    }

    /// Until `count` requests were made.
    pub(crate) async fn wait_requested(&self, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.requests.lock().unwrap().len() < count {
            assert!(Instant::now() < deadline, "too few requests were made");
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
            self.requests.lock().unwrap().push((name.clone(), params));
            // Other tasks run meanwhile, as they do while a real provider works.
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
        let event = (room_name.to_owned(), event.to_owned(), payload);
        self.emitted.send_modify(|all| all.push(event));
    }

    fn emit_frames_change(&self, change: &FramesChange) {
        let payload = serde_json::to_value(change).unwrap();
        let room = format!("room:{}", change.room_id);
        self.emit(&room, "frames_invalidate", payload);
    }

    fn send_frames_change(&self, _: i64, _: &FramesChange) {}

    fn is_alone(&self) -> bool {
        !self.has_company.load(Ordering::SeqCst)
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
        let failed_read = [room, provider, hash, detail].map(str::to_owned);
        self.failed_reads.lock().unwrap().push(failed_read);
        async {}.boxed()
    }
}
