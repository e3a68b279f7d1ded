//! Key pairs of users, and signing with them.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA512, RsaKeyPair},
};
use rsa::{
    RsaPrivateKey,
    pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding},
    rand_core::OsRng,
};
use std::sync::Arc;

use super::{BadKey, pem};
use crate::{
    fact::{Fact, Signature},
    store::KeyPair,
};

/// As upstream's.
const BITS: usize = 2048;

/// Makes a key pair. Looking for primes takes from a tenth of a second to several: not for a thread
/// that serves others.
///
/// The public key's text is as node-forge writes it, CRLF line ends and all: clients compare it,
/// and it is what a user's fact is hashed by.
///
/// # Errors
///
/// When the system has no random numbers.
pub fn generate() -> Result<KeyPair, rsa::Error> {
    let private = RsaPrivateKey::new(&mut OsRng, BITS)?;
    let public = private.to_public_key().to_public_key_pem(LineEnding::CRLF);
    let private = private.to_pkcs8_pem(LineEnding::LF);
    Ok(KeyPair {
        public: public.map_err(rsa::pkcs8::Error::from)?.into(),
        private: Arc::from(private?.as_str()),
    })
}

/// A key that signs. `ring` does the signing: the time that `rsa` takes depends on the key.
pub struct Signer {
    public: Arc<str>,
    pair: RsaKeyPair,
    random: SystemRandom,
}

impl fmt::Debug for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Signer")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

impl Signer {
    /// The private key may be PKCS#8 or PKCS#1, which is what upstream keeps.
    ///
    /// # Errors
    ///
    /// When the private key is none.
    pub fn new(key: &KeyPair) -> Result<Self, BadKey> {
        let (label, der) = pem::read(&key.private, ["PRIVATE KEY", "RSA PRIVATE KEY"])?;
        let pair = match label {
            0 => RsaKeyPair::from_pkcs8(&der),
            _ => RsaKeyPair::from_der(&der),
        };
        Ok(Self {
            public: key.public.clone(),
            pair: pair.map_err(|_| BadKey::Rsa)?,
            random: SystemRandom::new(),
        })
    }

    /// The same fact and key always give the same signature. Takes a millisecond or two.
    ///
    /// # Errors
    ///
    /// When the system has no random numbers, which hide how long it takes.
    pub fn sign(&self, fact: &Fact) -> Result<Signature, ring::error::Unspecified> {
        let mut signature = vec![0; self.pair.public().modulus_len()];
        let text = fact.canonical();
        self.pair.sign(
            &RSA_PKCS1_SHA512,
            &self.random,
            text.as_bytes(),
            &mut signature,
        )?;
        Ok(Signature {
            key: self.public.clone(),
            signature: STANDARD.encode(signature).into(),
        })
    }
}
