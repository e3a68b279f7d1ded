//! A provider that is registered and answers nothing by itself: the run uploads its results.

use anyhow::Context;
use bytes::Bytes;
use http::{Method, Uri};
use rand::RngExt;
use rand::distr::Alphanumeric;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::server::{API, HOLD};
use super::worker::Worker;
use crate::connection::Request;
use crate::server::{REQUEST_TIMEOUT, Server};

pub(super) const CATEGORY: &str = "bench";
const NAME: &str = "silent";

pub(super) struct Provider {
    worker: Worker,
    room: String,
    results: Uri,
}

#[derive(Deserialize)]
struct ProviderResponse<'a> {
    id: &'a str,
}

impl Provider {
    /// In a room of its own.
    pub(super) async fn register(server: &Server, phase: &str) -> anyhow::Result<Self> {
        let worker = Worker::register(server).await?.with_heartbeat(server);
        let room = server.unique_name(phase);
        let path = server.path(&format!("{API}/rooms/{room}/providers"));
        let body = format!(
            r#"{{"category":"{CATEGORY}","name":"{NAME}","schema":{{}},"content_type":"application/json","worker_id":"{}"}}"#,
            worker.id
        );
        let request = Request::new(Method::PUT, path, body);
        let response = server.connection().send(request, REQUEST_TIMEOUT).await?;
        let ProviderResponse { id } = response.json().context("registering a provider")?;
        let results = server.path(&format!("{API}/providers/{id}/results"));
        Ok(Self {
            worker,
            room,
            results,
        })
    }

    /// Held by the server's own default, if at all.
    pub(super) fn read(&self, server: &Server, key: &str) -> Request {
        read(server, &self.room, NAME, key)
    }

    pub(super) fn held_read(&self, server: &Server, key: &str) -> Request {
        self.read(server, key).held_for(HOLD)
    }

    pub(super) fn upload(&self, key: &str, body: Bytes) -> Request {
        Request::new(Method::POST, self.results.clone(), body)
            .with_header("x-request-hash", &hash(key))
    }

    /// Uploads a result of so many bytes before anybody reads it.
    pub(super) async fn upload_result(
        &self,
        server: &Server,
        key: &str,
        bytes: usize,
    ) -> anyhow::Result<()> {
        let request = self.upload(key, body(bytes));
        let uploaded = server.connection().send_ok(request, REQUEST_TIMEOUT).await;
        uploaded.map(drop).context("uploading a result")
    }

    pub(super) async fn leave(self, server: &Server) -> anyhow::Result<()> {
        self.worker.leave(server).await
    }
}

pub(super) fn read(server: &Server, room: &str, name: &str, key: &str) -> Request {
    Request::get(server.path(&format!(
        "{API}/rooms/{room}/providers/{room}:{CATEGORY}:{name}?key={key}"
    )))
}

/// A JSON text of random characters, so that a store that compresses gains little.
pub(super) fn body(bytes: usize) -> Bytes {
    let mut text = Vec::with_capacity(bytes);
    text.push(b'"');
    text.extend(rand::rng().sample_iter(Alphanumeric).take(bytes - 2));
    text.push(b'"');
    text.into()
}

/// The protocol names a read of this key by this hash of its parameters.
fn hash(key: &str) -> String {
    let digest = Sha256::digest(format!(r#"{{"key":"{key}"}}"#));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_named_by_the_sha_256_of_its_canonical_parameters() {
        // json.dumps({"key": "7"}, sort_keys=True, separators=(",", ":")) in Python.
        insta::assert_snapshot!(hash("7"), @"159407c348e6b8000a9462439fbb1c5642015a5687bcbf3d4ac6611e9d294647");
    }

    #[test]
    fn a_body_is_a_json_text_of_its_size() {
        let body = body(200);
        assert_eq!(body.len(), 200);
        assert!(serde_json::from_slice::<String>(&body).is_ok());
    }
}
