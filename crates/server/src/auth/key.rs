//! The issuer's keys: from the configuration, or from its key set.

use anyhow::{Context, Result, bail};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde::Deserialize;
use serde_json::Value;
use wakeline_web::token::{Key, Token};

use crate::config;

/// A key, and its id in the key set.
#[derive(Clone, Debug)]
pub(super) struct IssuerKey {
    id: Option<String>,
    pub(super) key: Key,
}

/// What a key set says of a key (RFC 7517).
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
}

impl IssuerKey {
    pub(super) fn secret(secret: &config::Secret) -> Self {
        Self {
            id: None,
            key: Key::Secret(secret.expose().as_bytes().to_vec()),
        }
    }

    pub(super) fn from_pem(text: &str) -> Result<Self> {
        let key = Key::from_pem(text)?;
        Ok(Self { id: None, key })
    }

    /// Sets hold keys for other purposes too; the error says why this one is left out.
    pub(super) fn from_jwk(jwk: Value) -> Result<Self> {
        let jwk: Jwk = serde_json::from_value(jwk)?;
        if jwk.purpose.is_some_and(|purpose| purpose != "sig") {
            bail!("not for signatures");
        }
        let bytes = |field: Option<String>, name: &str| {
            let text = field.with_context(|| format!("without {name}"))?;
            BASE64.decode(text).context(name.to_owned())
        };
        let key = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Key::rsa(bytes(jwk.n, "n")?, bytes(jwk.e, "e")?)?,
            ("OKP", Some("Ed25519")) => Key::ed25519(bytes(jwk.x, "x")?)?,
            // A secret that is published is none.
            ("oct", _) => bail!("a symmetric key"),
            _ => bail!("neither RSA nor Ed25519"),
        };
        if jwk
            .alg
            .is_some_and(|algorithm| algorithm != key.algorithm())
        {
            bail!("for another algorithm than RS256 or EdDSA");
        }
        Ok(Self { id: jwk.kid, key })
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
    }

    /// A key or a token without an id matches all: then only the signature tells.
    pub(super) fn may_have_signed(&self, token: &Token<'_>) -> bool {
        token
            .key_id()
            .is_none_or(|id| self.id.is_none() || self.has_id(id))
    }

    /// Whether this is the key that the token names.
    pub(super) fn is_named_by(&self, token: &Token<'_>) -> bool {
        token.key_id().is_some_and(|id| self.has_id(id))
            && self.key.algorithm() == token.algorithm()
    }
}
