//! Providers, their reads and their results.

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Body, JobsState, header, ok, whole};

impl JobsState {
    pub(super) fn register_provider(&self, room: &str, body: &Value) -> Response<Body> {
        let (category, name) = (&body["category"], &body["name"]);
        let name = format!(
            "{room}:{}:{}",
            category.as_str().unwrap(),
            name.as_str().unwrap()
        );
        let id = self.id("p");
        self.providers.lock().unwrap().insert(id.clone(), name);
        ok(&json!({"id": id}))
    }

    pub(super) async fn read_provider(&self, name: &str, head: &Parts) -> Response<Body> {
        let query = head.uri.query().unwrap();
        let key = query.strip_prefix("key=").unwrap();
        let digest = Sha256::digest(json!({"key": key}).to_string());
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let result = (name.to_owned(), hash.clone());
        let found = || self.results.lock().unwrap().get(&result).cloned();
        if found().is_none() {
            let mut dispatched = self.dispatched.lock().unwrap();
            let requests = dispatched.entry(name.to_owned()).or_default();
            requests.push_back(json!({"key": key, "hash": hash}));
            drop(dispatched);
            self.changed();
        }
        match self.hold(head, found).await {
            Some(body) => whole(StatusCode::OK, body),
            None => whole(StatusCode::GATEWAY_TIMEOUT, "no provider answers"),
        }
    }

    /// What a provider would get by Socket.IO.
    pub(super) async fn next_dispatched(&self, name: &str) -> Response<Body> {
        loop {
            let mut changes = self.changes.subscribe();
            let next = self
                .dispatched
                .lock()
                .unwrap()
                .get_mut(name)
                .and_then(std::collections::VecDeque::pop_front);
            match next {
                Some(request) => return ok(&request),
                None => changes.changed().await.unwrap(),
            }
        }
    }

    pub(super) fn upload(&self, id: &str, head: &Parts, body: Bytes) -> Response<Body> {
        let name = self.providers.lock().unwrap()[id].clone();
        let hash = header(head, "x-request-hash").unwrap().to_owned();
        self.results.lock().unwrap().insert((name, hash), body);
        self.changed();
        whole(StatusCode::NO_CONTENT, "")
    }
}
