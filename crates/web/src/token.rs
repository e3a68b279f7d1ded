//! Signed tokens (JWT): parsed, verified with public keys and shared secrets, and signed.
//!
//! The key decides how a signature is verified, and the token's `alg` is only compared with it, so
//! that a public key, which anyone may have, is never taken for a shared secret.

use std::fmt;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as BASE64},
};
use ring::{hmac, signature};
use rsa::{
    pkcs1,
    pkcs8::{ObjectIdentifier, SubjectPublicKeyInfoRef},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::object::OpenObject;

/// Longer texts are not parsed.
const MAX_LENGTH: usize = 16 * 1024;
/// Below it a signature proves nothing, and `ring` refuses to verify it.
const MIN_RSA_BYTES: usize = 2048 / 8;
const ED25519_BYTES: usize = 32;
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// The parts of a token. Believe nothing of it before [`Token::is_signed_by`].
#[derive(Debug)]
pub struct Token<'a> {
    header: Header,
    claims: Map<String, Value>,
    /// The part that is signed.
    message: &'a str,
    signature: Vec<u8>,
}

#[derive(Debug, Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// Why a text is refused before any key is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    NotAToken,
    /// `crit` names extensions that a reader must know, and none is known here.
    CriticalHeader,
}

/// Why the time is wrong for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeError {
    Expired,
    TooEarly,
    /// The claim of this name is not a number.
    Unreadable(&'static str),
}

impl<'a> Token<'a> {
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        let token = Self::split(text).ok_or(ParseError::NotAToken)?;
        match token.header.crit {
            None => Ok(token),
            Some(_) => Err(ParseError::CriticalHeader),
        }
    }

    fn split(text: &'a str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (message, signature) = text.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let OpenObject(header) = decoded(header)?;
        Some(Self {
            header,
            claims: decoded(claims)?,
            message,
            signature: BASE64.decode(signature).ok()?,
        })
    }

    #[must_use]
    pub fn algorithm(&self) -> &str {
        &self.header.alg
    }

    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    #[must_use]
    pub fn claims(&self) -> &Map<String, Value> {
        &self.claims
    }

    /// A claim; null counts as missing.
    #[must_use]
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.claims.get(name).filter(|value| !value.is_null())
    }

    /// Whether the claim is this text, or a list that contains it.
    #[must_use]
    pub fn names(&self, claim: &str, text: &str) -> bool {
        match self.claim(claim) {
            Some(Value::Array(values)) => values.iter().any(|value| value == text),
            value => value.is_some_and(|value| value == text),
        }
    }

    /// Takes the same time wherever a wrong signature differs.
    #[must_use]
    pub fn is_signed_by(&self, key: &Key) -> bool {
        let message = self.message.as_bytes();
        let hmac = |algorithm, secret: &[u8]| {
            hmac::verify(&hmac::Key::new(algorithm, secret), message, &self.signature)
        };
        let verified = match (key, self.algorithm()) {
            (Key::Secret(secret), "HS256") => hmac(hmac::HMAC_SHA256, secret),
            (Key::Secret(secret), "HS384") => hmac(hmac::HMAC_SHA384, secret),
            (Key::Secret(secret), "HS512") => hmac(hmac::HMAC_SHA512, secret),
            (Key::Rsa { n, e }, "RS256") => signature::RsaPublicKeyComponents { n, e }.verify(
                &signature::RSA_PKCS1_2048_8192_SHA256,
                message,
                &self.signature,
            ),
            (Key::Ed25519(key), "EdDSA") => {
                signature::UnparsedPublicKey::new(&signature::ED25519, key)
                    .verify(message, &self.signature)
            }
            _ => return false,
        };
        verified.is_ok()
    }

    /// Compares `exp` and `nbf`, where they are given, with `now` and a clock that may be off by
    /// `skew`; all in seconds since 1970.
    #[expect(clippy::cast_precision_loss, reason = "seconds are far below 2^53")]
    pub fn check_time(&self, now: u64, skew: u64) -> Result<(), TimeError> {
        let seconds = |name| {
            let claim = self.claim(name);
            let number = claim.map(|value| value.as_f64().ok_or(TimeError::Unreadable(name)));
            number.transpose()
        };
        if seconds("exp")?.is_some_and(|end| end <= now.saturating_sub(skew) as f64) {
            return Err(TimeError::Expired);
        }
        if seconds("nbf")?.is_some_and(|begin| begin > now.saturating_add(skew) as f64) {
            return Err(TimeError::TooEarly);
        }
        Ok(())
    }
}

fn decoded<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64.decode(part).ok()?).ok()
}

/// Signs `claims` with HS256.
///
/// Panics if they are no JSON.
#[must_use]
pub fn sign(secret: &[u8], claims: &impl Serialize) -> String {
    let claims = serde_json::to_vec(claims).expect("claims are plain data");
    let header = BASE64.encode(br#"{"alg":"HS256","typ":"JWT"}"#);
    let message = format!("{header}.{}", BASE64.encode(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let signature = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", BASE64.encode(signature))
}

/// Verifies signatures.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    Secret(Vec<u8>),
    /// Modulus and exponent, big-endian.
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    Ed25519(Vec<u8>),
}

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("this is a private key, which only the issuer should have; give the public one")]
    Private,
    #[error("not a public key in PEM: expected -----BEGIN PUBLIC KEY-----")]
    NotPem,
    #[error("neither an RSA nor an Ed25519 public key")]
    OtherKind,
    #[error("the RSA key is shorter than 2048 bits")]
    Short,
}

impl Key {
    /// A public key in PEM: `PUBLIC KEY`, or `RSA PUBLIC KEY`.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        if text.contains("PRIVATE KEY") {
            return Err(KeyError::Private);
        }
        let (label, der) = ["PUBLIC KEY", "RSA PUBLIC KEY"]
            .into_iter()
            .find_map(|label| Some((label, pem_body(text, label)?)))
            .ok_or(KeyError::NotPem)?;
        let der = der.map_err(|_| KeyError::OtherKind)?;
        if label == "RSA PUBLIC KEY" {
            return Self::from_pkcs1(&der);
        }
        let info = SubjectPublicKeyInfoRef::try_from(&*der).map_err(|_| KeyError::OtherKind)?;
        let key = info.subject_public_key.raw_bytes();
        match info.algorithm.oid {
            RSA => Self::from_pkcs1(key),
            ED25519 => Self::ed25519(key.to_vec()),
            _ => Err(KeyError::OtherKind),
        }
    }

    fn from_pkcs1(der: &[u8]) -> Result<Self, KeyError> {
        let key = pkcs1::RsaPublicKey::try_from(der).map_err(|_| KeyError::OtherKind)?;
        let bytes = |number: pkcs1::UintRef<'_>| number.as_bytes().to_vec();
        Self::rsa(bytes(key.modulus), bytes(key.public_exponent))
    }

    /// Of a modulus and an exponent, big-endian.
    pub fn rsa(n: Vec<u8>, e: Vec<u8>) -> Result<Self, KeyError> {
        if n.len() < MIN_RSA_BYTES {
            return Err(KeyError::Short);
        }
        Ok(Self::Rsa { n, e })
    }

    pub fn ed25519(key: Vec<u8>) -> Result<Self, KeyError> {
        if key.len() != ED25519_BYTES {
            return Err(KeyError::OtherKind);
        }
        Ok(Self::Ed25519(key))
    }

    /// The algorithm of the tokens that a key of this kind usually signs.
    #[must_use]
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Secret(_) => "HS256",
            Self::Rsa { .. } => "RS256",
            Self::Ed25519(_) => "EdDSA",
        }
    }
}

/// The text between the lines of `label`, without its line breaks.
fn pem_body(text: &str, label: &str) -> Option<Result<Vec<u8>, base64::DecodeError>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let body = rest.split("-----END ").next().unwrap_or(rest);
    let body: String = body.split_whitespace().collect();
    Some(STANDARD.decode(body))
}

/// Shows the kind only: a secret must not reach a log.
impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.algorithm())
    }
}
