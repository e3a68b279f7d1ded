//! Signed tokens, read by hand: the key decides the algorithm and the token's header is only
//! compared, so that a public key is never taken for a shared secret.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{hmac, signature};
use rsa::{
    RsaPublicKey, pkcs1::DecodeRsaPublicKey, pkcs8::DecodePublicKey, traits::PublicKeyParts,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// A longer one is nobody's.
const MAX_LENGTH: usize = 16 * 1024;
/// Below it a signature is no proof, and `ring` refuses to look.
const MIN_RSA_BITS: usize = 2048;
/// How far the issuer's clock may be from ours, in seconds.
const SKEW: u64 = 60;

/// The parts of a token. Nothing of it is to be believed before [`Token::is_signed_by`].
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) header: Header,
    pub(super) claims: Claims,
    /// What is signed.
    message: &'a str,
    signature: Vec<u8>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Header {
    alg: String,
    pub(super) kid: Option<String>,
    /// Extensions that whoever reads it must know; none is known here.
    crit: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    #[serde(default)]
    pub(super) sub: Value,
    #[serde(default)]
    pub(super) iss: Value,
    #[serde(default)]
    pub(super) aud: Value,
    #[serde(default)]
    pub(super) display_name: Value,
    #[serde(default)]
    exp: Option<f64>,
    #[serde(default)]
    nbf: Option<f64>,
}

impl<'a> Token<'a> {
    pub(super) fn read(text: &'a str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let header: Header = decoded(header)?;
        if header.crit.is_some() {
            return None;
        }
        Some(Self {
            header,
            claims: decoded(claims)?,
            message,
            signature: BASE64.decode(signature).ok()?,
        })
    }

    pub(super) fn is_signed_by(&self, key: &Key) -> bool {
        let message = self.message.as_bytes();
        match (key, self.header.alg.as_str()) {
            (Key::Secret(secret), "HS256") => {
                is_sealed(hmac::HMAC_SHA256, secret, message, &self.signature)
            }
            (Key::Secret(secret), "HS384") => {
                is_sealed(hmac::HMAC_SHA384, secret, message, &self.signature)
            }
            (Key::Secret(secret), "HS512") => {
                is_sealed(hmac::HMAC_SHA512, secret, message, &self.signature)
            }
            (Key::Rsa(RsaKey { n, e }), "RS256") => signature::RsaPublicKeyComponents { n, e }
                .verify(
                    &signature::RSA_PKCS1_2048_8192_SHA256,
                    message,
                    &self.signature,
                )
                .is_ok(),
            _ => false,
        }
    }

    /// `now` in seconds since 1970. A token without an end does not end: the issuer wanted it so.
    #[expect(clippy::cast_precision_loss, reason = "seconds are far below 2^53")]
    pub(super) fn is_valid_at(&self, now: u64) -> bool {
        let has_ended = |end: f64| end <= now.saturating_sub(SKEW) as f64;
        let has_begun = |begin: f64| begin <= now.saturating_add(SKEW) as f64;
        !self.claims.exp.is_some_and(has_ended) && self.claims.nbf.is_none_or(has_begun)
    }
}

fn is_sealed(algorithm: hmac::Algorithm, secret: &[u8], message: &[u8], signature: &[u8]) -> bool {
    hmac::verify(&hmac::Key::new(algorithm, secret), message, signature).is_ok()
}

fn decoded<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64.decode(part).ok()?).ok()
}

/// What signatures of tokens are checked with.
#[derive(Clone)]
pub(super) enum Key {
    Secret(Vec<u8>),
    Rsa(RsaKey),
}

/// An RSA public key: modulus and exponent, big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaKey {
    pub n: Vec<u8>,
    pub e: Vec<u8>,
}

impl Key {
    /// PEM of an RSA public key; anything else is a shared secret.
    pub(super) fn read(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if !text.starts_with("-----BEGIN") {
            return if text.is_empty() {
                Err("the key is empty")
            } else {
                Ok(Self::Secret(text.as_bytes().to_vec()))
            };
        }
        if text.contains("PRIVATE KEY") {
            return Err("this is a private key, which only the issuer should have");
        }
        let key = RsaPublicKey::from_public_key_pem(text)
            .or_else(|_| RsaPublicKey::from_pkcs1_pem(text))
            .map_err(|_| "the key is not an RSA public key in PEM")?;
        if key.n().bits() < MIN_RSA_BITS {
            return Err("the RSA key is shorter than 2048 bits");
        }
        Ok(Self::Rsa(RsaKey {
            n: key.n().to_bytes_be(),
            e: key.e().to_bytes_be(),
        }))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(_) => out.write_str("Secret"),
            Self::Rsa(_) => out.write_str("Rsa"),
        }
    }
}
