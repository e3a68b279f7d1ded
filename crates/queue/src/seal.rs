//! Payloads sealed at rest: AES-256-GCM with a key of the server, in Queen's shape.
//!
//! The store keeps the fingerprint of the key that seals. A server that does not have this key neither
//! seals nor makes a key of its own, so that no message is lost under a key that nobody keeps.

mod key_file;
mod queue_sealer;

use std::fmt;

use aes_gcm::{
    Aes256Gcm, KeyInit, Nonce,
    aead::{Aead, Payload},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use key_file::{FILE_NAME, KeyFile};
pub(crate) use queue_sealer::QueueSealer;

/// Keys that a server may have.
pub const MAX_KEYS: usize = 16;
/// Before the hashed key, so that a fingerprint is no hash of it for any other use.
const FINGERPRINT_OF: &[u8] = b"wakeline queue key ";
const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;

/// Names a key and gives nothing of it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub i64);

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

impl Fingerprint {
    fn of_text(text: &str) -> Option<Self> {
        let digits = u64::from_str_radix(text, 16).ok()?;
        Some(Self(digits.cast_signed()))
    }
}

/// Fingerprints for a text.
struct KeyNames<'a>(&'a [Fingerprint]);

impl fmt::Display for KeyNames<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => out.write_str("has no key"),
            [one] => write!(out, "has the key {one}"),
            keys => {
                let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
                write!(out, "has the keys {}", keys.join(", "))
            }
        }
    }
}

#[derive(Clone)]
struct Key {
    cipher: Aes256Gcm,
    fingerprint: Fingerprint,
}

impl Key {
    /// From 64 hexadecimal digits.
    fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let key: Vec<u8> = (0..64)
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
            .collect::<Option<_>>()?;
        let hash = Sha256::new()
            .chain_update(FINGERPRINT_OF)
            .chain_update(&key);
        let hash = hash.finalize();
        let first = hash.first_chunk().copied().expect("a hash is longer");
        Some(Self {
            cipher: Aes256Gcm::new_from_slice(&key).ok()?,
            fingerprint: Fingerprint(i64::from_be_bytes(first)),
        })
    }
}

/// The server's keys: the first seals, all open.
#[derive(Clone)]
pub struct Sealer {
    keys: Vec<Key>,
    fingerprints: Vec<Fingerprint>,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Sealer({:?})", self.fingerprints)
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct SealedPayload {
    encrypted: String,
    iv: String,
    auth_tag: String,
    /// The fingerprint of the key.
    #[serde(default)]
    key: Option<String>,
}

/// The server does not have the key of a sealed message, or the message was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a message is sealed with {}, and this server {}",
    .sealed_with.map_or("a key that it does not name".to_owned(), |key| format!("the key {key}")),
    KeyNames(.keys)
)]
pub struct CannotOpen {
    pub sealed_with: Option<Fingerprint>,
    pub keys: Vec<Fingerprint>,
}

/// The store's messages are sealed with a key that this server does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store's messages are sealed with the key {store}, and this server {}", KeyNames(.server))]
pub struct OtherKey {
    pub store: Fingerprint,
    pub server: Vec<Fingerprint>,
}

impl Sealer {
    /// From one key or several, separated by commas, each of 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let keys = text.split(',').map(|key| Key::from_hex(key.trim()));
        let keys: Vec<Key> = keys.collect::<Option<_>>()?;
        (keys.len() <= MAX_KEYS).then(|| Self::of(keys))
    }

    fn of(keys: Vec<Key>) -> Self {
        let fingerprints = keys.iter().map(|key| key.fingerprint).collect();
        Self { keys, fingerprints }
    }

    /// These keys and then those: the first of these seals.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        self.keys.extend(more.keys);
        Self::of(self.keys)
    }

    #[must_use]
    pub fn fingerprints(&self) -> &[Fingerprint] {
        &self.fingerprints
    }

    /// The encrypted payload, as JSON again.
    #[must_use]
    pub fn seal(&self, payload: &str) -> String {
        let key = &self.keys[0];
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let mut sealed = key
            .cipher
            .encrypt(&Nonce::from(nonce), Payload::from(payload.as_bytes()))
            .expect("a payload is shorter than the cipher's limit");
        let tag = sealed.split_off(sealed.len() - TAG_BYTES);
        let sealed = SealedPayload {
            encrypted: STANDARD.encode(sealed),
            iv: STANDARD.encode(nonce),
            auth_tag: STANDARD.encode(tag),
            key: Some(key.fingerprint.to_string()),
        };
        serde_json::to_string(&sealed).expect("strings are JSON")
    }

    /// Decrypts a payload with the keys that there are.
    pub fn open(sealer: Option<&Self>, payload: &str) -> Result<String, CannotOpen> {
        let keys = sealer.map_or(&[][..], |sealer| &sealer.keys);
        let sealed: Option<SealedPayload> = serde_json::from_str(payload).ok();
        let sealed_with = sealed.as_ref().and_then(|sealed| sealed.key.as_deref());
        let sealed_with = sealed_with.and_then(Fingerprint::of_text);
        let is_named = |key: &&Key| sealed_with.is_none_or(|named| named == key.fingerprint);
        let opened = sealed.and_then(|sealed| {
            let mut fitting = keys.iter().filter(is_named);
            fitting.find_map(|key| sealed.open(&key.cipher))
        });
        opened.ok_or_else(|| CannotOpen {
            sealed_with,
            keys: sealer.map_or_else(Vec::new, |sealer| sealer.fingerprints.clone()),
        })
    }
}

impl SealedPayload {
    fn open(&self, cipher: &Aes256Gcm) -> Option<String> {
        let bytes = |text: &str| STANDARD.decode(text).ok();
        let nonce: [u8; NONCE_BYTES] = bytes(&self.iv)?.try_into().ok()?;
        let mut text = bytes(&self.encrypted)?;
        text.extend(bytes(&self.auth_tag)?);
        let opened = cipher
            .decrypt(&Nonce::from(nonce), Payload::from(text.as_slice()))
            .ok()?;
        String::from_utf8(opened).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(sealer: &Sealer, payload: &str) -> Result<String, CannotOpen> {
        Sealer::open(Some(sealer), payload)
    }

    #[test]
    fn a_sealed_payload_is_opened_by_its_own_key_only() {
        let sealer = Sealer::from_hex(&"0a".repeat(32)).unwrap();
        let sealed = sealer.seal(r#"{"a": 1}"#);
        assert!(!sealed.contains('a') || !sealed.contains("\"a\": 1"));
        assert_ne!(sealed, sealer.seal(r#"{"a": 1}"#), "a nonce is used once");
        assert_eq!(open(&sealer, &sealed).unwrap(), r#"{"a": 1}"#);
        let other = Sealer::from_hex(&"0b".repeat(32)).unwrap();
        let refused = open(&other, &sealed).unwrap_err().to_string();
        for key in [&sealer, &other] {
            let fingerprint = key.fingerprints()[0].to_string();
            assert!(refused.contains(&fingerprint), "{refused}");
        }
        assert!(open(&sealer, "{}").is_err());
        let refused = Sealer::open(None, &sealed).unwrap_err().to_string();
        assert!(refused.contains("has no key"), "{refused}");
    }

    #[test]
    fn the_first_key_seals_and_all_keys_open() {
        let (old, new) = ("0a".repeat(32), "0b".repeat(32));
        let [before, after] = [&old, &new].map(|key| Sealer::from_hex(key).unwrap());
        let both = Sealer::from_hex(&format!("{new}, {old}")).unwrap();
        assert_eq!(open(&both, &before.seal("1")).unwrap(), "1");
        assert_eq!(open(&after, &both.seal("2")).unwrap(), "2");
        assert!(open(&before, &both.seal("2")).is_err());
        assert_eq!(after.and(before).fingerprints(), both.fingerprints());
    }

    #[test]
    fn a_payload_that_names_no_key_is_opened_by_the_one_that_fits() {
        let both =
            Sealer::from_hex(&["0b", "0a"].map(|digits| digits.repeat(32)).join(",")).unwrap();
        let sealed = Sealer::from_hex(&"0a".repeat(32)).unwrap().seal("1");
        let mut unnamed: serde_json::Value = serde_json::from_str(&sealed).unwrap();
        unnamed.as_object_mut().unwrap().remove("key");
        assert_eq!(open(&both, &unnamed.to_string()).unwrap(), "1");
    }

    #[test]
    fn a_key_is_64_hexadecimal_digits() {
        assert!(Sealer::from_hex("").is_none());
        assert!(Sealer::from_hex(&"zz".repeat(32)).is_none());
        assert!(Sealer::from_hex(&"é".repeat(32)).is_none());
        assert!(Sealer::from_hex(&format!("{},", "0a".repeat(32))).is_none());
    }
}
