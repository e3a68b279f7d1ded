//! A provider that is known to the server and answers nothing by itself: its results are uploaded
//! by the run.

use anyhow::Context;
use bytes::Bytes;
use http::{Method, Uri};
use rand::RngExt;
use rand::distr::Alphanumeric;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::host::{API, HOLD, ask};
use super::worker::Worker;
use crate::contestant::{Contestant, PATIENCE};
use crate::line::Ask;

pub(super) const CATEGORY: &str = "bench";
const NAME: &str = "silent";

pub(super) struct Provider {
    worker: Worker,
    room: String,
    results: Uri,
}

#[derive(Deserialize)]
struct Registered<'a> {
    id: &'a str,
}

impl Provider {
    /// In a room of its own.
    pub(super) async fn register(server: &Contestant, phase: &str) -> anyhow::Result<Self> {
        let worker = Worker::register(server).await?.keep(server);
        let room = server.named(phase);
        let path = server.path(&format!("{API}/rooms/{room}/providers"));
        let body = format!(
            r#"{{"category":"{CATEGORY}","name":"{NAME}","schema":{{}},"content_type":"application/json","worker_id":"{}"}}"#,
            worker.id
        );
        let answer = server
            .line()
            .send(Ask::new(Method::PUT, path, body), PATIENCE)
            .await?;
        let Registered { id } = answer.read().context("registering a provider")?;
        let results = server.path(&format!("{API}/providers/{id}/results"));
        Ok(Self {
            worker,
            room,
            results,
        })
    }

    /// Held by the server's own default, if it is held.
    pub(super) fn read(&self, server: &Contestant, key: &str) -> Ask {
        read(server, &self.room, NAME, key)
    }

    pub(super) fn held_read(&self, server: &Contestant, key: &str) -> Ask {
        let hold = format!("wait={}", HOLD.as_secs());
        self.read(server, key).with("prefer", &hold)
    }

    pub(super) fn upload(&self, key: &str, body: Bytes) -> Ask {
        Ask::new(Method::POST, self.results.clone(), body).with("x-request-hash", &hash(key))
    }

    /// A result of so many bytes, there before it is asked for.
    pub(super) async fn put(
        &self,
        server: &Contestant,
        key: &str,
        bytes: usize,
    ) -> anyhow::Result<()> {
        ask(&mut server.line(), self.upload(key, body(bytes)))
            .await
            .context("uploading a result")
    }

    pub(super) async fn leave(self, server: &Contestant) -> anyhow::Result<()> {
        self.worker.leave(server).await
    }
}

pub(super) fn read(server: &Contestant, room: &str, name: &str, key: &str) -> Ask {
    Ask::get(server.path(&format!(
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

/// By which the protocol names a read of this key.
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
