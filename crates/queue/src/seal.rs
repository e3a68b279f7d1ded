//! Payloads sealed at rest: AES-256-GCM with the server's key, in Queen's shape.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use aes_gcm::{
    Aes256Gcm, KeyInit, Nonce,
    aead::{Aead, Payload},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use crate::message::NewMessage;

/// Names of sealed queues that are remembered; past it all are forgotten.
const MAX_QUEUES: usize = 10_000;
const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;

/// The server's key.
#[derive(Clone)]
pub struct Sealer(Aes256Gcm);

impl std::fmt::Debug for Sealer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Sealer(…)")
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct SealedPayload {
    encrypted: String,
    iv: String,
    auth_tag: String,
}

/// It was sealed with another key, or was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sealed message cannot be opened: it was sealed with another key, or changed")]
pub struct CannotOpen;

impl Sealer {
    /// From 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let key: Vec<u8> = (0..64)
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
            .collect::<Option<_>>()?;
        Aes256Gcm::new_from_slice(&key).ok().map(Self)
    }

    /// The encrypted payload, as JSON again.
    #[must_use]
    pub fn seal(&self, payload: &str) -> String {
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let mut sealed = self
            .0
            .encrypt(&Nonce::from(nonce), Payload::from(payload.as_bytes()))
            .expect("a payload is shorter than the cipher's limit");
        let tag = sealed.split_off(sealed.len() - TAG_BYTES);
        let sealed = SealedPayload {
            encrypted: STANDARD.encode(sealed),
            iv: STANDARD.encode(nonce),
            auth_tag: STANDARD.encode(tag),
        };
        serde_json::to_string(&sealed).expect("strings are JSON")
    }

    pub fn open(&self, payload: &str) -> Result<String, CannotOpen> {
        let sealed: SealedPayload = serde_json::from_str(payload).map_err(|_| CannotOpen)?;
        let bytes = |text: &str| STANDARD.decode(text).map_err(|_| CannotOpen);
        let nonce: [u8; NONCE_BYTES] = bytes(&sealed.iv)?.try_into().map_err(|_| CannotOpen)?;
        let mut text = bytes(&sealed.encrypted)?;
        text.extend(bytes(&sealed.auth_tag)?);
        let opened = self
            .0
            .decrypt(&Nonce::from(nonce), Payload::from(text.as_slice()))
            .map_err(|_| CannotOpen)?;
        String::from_utf8(opened).map_err(|_| CannotOpen)
    }
}

/// The server's key, and the queues that are known to keep their messages sealed: a hint that saves
/// a refused attempt.
#[derive(Debug)]
pub(crate) struct QueueSealer {
    sealer: Sealer,
    queues: Mutex<HashSet<String>>,
}

impl QueueSealer {
    pub(crate) fn new(sealer: Sealer) -> Self {
        Self {
            sealer,
            queues: Mutex::default(),
        }
    }

    pub(crate) fn key(&self) -> &Sealer {
        &self.sealer
    }

    /// Seals the messages to queues that are known to be sealed.
    pub(crate) fn seal_known(&self, messages: &mut [NewMessage]) {
        let to_seal: Vec<usize> = {
            let queues = self.queues();
            let known = |index: &usize| queues.contains(&messages[*index].queue);
            (0..messages.len()).filter(known).collect()
        };
        for index in to_seal {
            self.seal(&mut messages[index]);
        }
    }

    /// Seals messages that their queues refused unsealed, and remembers the queues.
    pub(crate) fn seal_refused(&self, messages: &mut [NewMessage]) {
        {
            let mut queues = self.queues();
            if queues.len() >= MAX_QUEUES {
                queues.clear();
            }
            queues.extend(messages.iter().map(|message| message.queue.clone()));
        }
        for message in messages {
            self.seal(message);
        }
    }

    /// The queue may not be sealed any more.
    pub(crate) fn forget(&self, queue: &str) {
        self.queues().remove(queue);
    }

    fn seal(&self, message: &mut NewMessage) {
        if !message.is_sealed {
            message.payload = self.sealer.seal(&message.payload).into();
            message.is_sealed = true;
        }
    }

    fn queues(&self) -> MutexGuard<'_, HashSet<String>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_by_the_same_key_only() {
        let sealer = Sealer::from_hex(&"0a".repeat(32)).unwrap();
        let sealed = sealer.seal(r#"{"a": 1}"#);
        assert!(!sealed.contains('a') || !sealed.contains("\"a\": 1"));
        assert_ne!(sealed, sealer.seal(r#"{"a": 1}"#), "a nonce is used once");
        assert_eq!(sealer.open(&sealed).unwrap(), r#"{"a": 1}"#);
        let other = Sealer::from_hex(&"0b".repeat(32)).unwrap();
        assert_eq!(other.open(&sealed), Err(CannotOpen));
        assert_eq!(sealer.open("{}"), Err(CannotOpen));
    }

    #[test]
    fn a_key_is_64_hexadecimal_digits() {
        assert!(Sealer::from_hex("").is_none());
        assert!(Sealer::from_hex(&"zz".repeat(32)).is_none());
        assert!(Sealer::from_hex(&"é".repeat(32)).is_none());
    }
}
