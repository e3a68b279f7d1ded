//! Checks the signatures of facts.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::signature::{RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents};
use rsa::{
    RsaPublicKey, pkcs1::DecodeRsaPublicKey as _, pkcs8::DecodePublicKey as _,
    traits::PublicKeyParts as _,
};
use thiserror::Error;

use super::{BadKey, pem};
use crate::fact::{Envelope, Reference};

/// How many keys are remembered, twice over.
const REMEMBERED: usize = 5_000;

/// A signature that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("signature {index} of {fact}: {flaw}")]
pub struct InvalidSignature {
    pub fact: Reference,
    /// Of the fact's signatures, counted from 0.
    pub index: usize,
    pub flaw: SignatureFlaw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SignatureFlaw {
    #[error("bad public key: {0}")]
    Key(#[from] BadKey),
    #[error("it is not base64")]
    Base64,
    #[error("it is not of this fact and key")]
    Wrong,
}

/// Remembers the keys it has read: the same ones come with every save.
#[derive(Debug, Default)]
pub struct Verifier {
    keys: Mutex<Keys>,
}

type Key = Arc<RsaPublicKeyComponents<Vec<u8>>>;

/// When the young are full they become the old, and the old are forgotten: so keys in use stay.
#[derive(Debug, Default)]
struct Keys {
    young: HashMap<Arc<str>, Key>,
    old: HashMap<Arc<str>, Key>,
}

impl Verifier {
    /// Checks all signatures, each in less than a tenth of a millisecond. The hashes are right by
    /// construction.
    ///
    /// # Errors
    ///
    /// The first that does not hold.
    pub fn verify(&self, envelopes: &[Envelope]) -> Result<(), InvalidSignature> {
        for Envelope { fact, signatures } in envelopes {
            if signatures.is_empty() {
                continue;
            }
            let text = fact.canonical();
            for (index, signature) in signatures.iter().enumerate() {
                self.verify_one(&text, &signature.key, &signature.signature)
                    .map_err(|flaw| InvalidSignature {
                        fact: fact.reference.clone(),
                        index,
                        flaw,
                    })?;
            }
        }
        Ok(())
    }

    fn verify_one(&self, text: &str, key: &Arc<str>, signature: &str) -> Result<(), SignatureFlaw> {
        let key = self.key(key)?;
        let signature = STANDARD
            .decode(signature)
            .map_err(|_| SignatureFlaw::Base64)?;
        key.verify(&RSA_PKCS1_2048_8192_SHA512, text.as_bytes(), &signature)
            .map_err(|_| SignatureFlaw::Wrong)
    }

    fn key(&self, text: &Arc<str>) -> Result<Key, BadKey> {
        if let Some(key) = self.keys().get(text) {
            return Ok(key);
        }
        let key = Arc::new(read(text)?);
        self.keys().keep(text.clone(), key.clone());
        Ok(key)
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys {
    fn get(&mut self, text: &Arc<str>) -> Option<Key> {
        if let Some(key) = self.young.get(text) {
            return Some(key.clone());
        }
        let key = self.old.remove(text)?;
        self.keep(text.clone(), key.clone());
        Some(key)
    }

    fn keep(&mut self, text: Arc<str>, key: Key) {
        if self.young.len() >= REMEMBERED {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(text, key);
    }
}

fn read(text: &str) -> Result<RsaPublicKeyComponents<Vec<u8>>, BadKey> {
    let (label, der) = pem::read(text, ["PUBLIC KEY", "RSA PUBLIC KEY"])?;
    let key = match label {
        0 => RsaPublicKey::from_public_key_der(&der).map_err(|_| BadKey::Rsa)?,
        _ => RsaPublicKey::from_pkcs1_der(&der).map_err(|_| BadKey::Rsa)?,
    };
    let bits = key.n().bits();
    if bits < 2048 {
        return Err(BadKey::Size(bits));
    }
    Ok(RsaPublicKeyComponents {
        n: key.n().to_bytes_be(),
        e: key.e().to_bytes_be(),
    })
}
