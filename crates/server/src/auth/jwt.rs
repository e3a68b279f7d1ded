//! Signed tokens: which keys verify them, which claims they need, and whom they identify.

use std::{
    fs,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use serde_json::Value;
use wakeline_web::{
    Identity,
    token::{ParseError, TimeError, Token},
};

use super::{LoginError, jwks::Jwks, key::IssuerKey, roles::Roles, token_cache::TokenCache};
use crate::config;

/// A subject is stored with every message that it pushes.
const MAX_SUBJECT: usize = 255;

#[derive(Debug)]
pub(super) struct Jwt {
    /// From the configuration.
    keys: Vec<IssuerKey>,
    jwks: Option<Arc<Jwks>>,
    algorithms: &'static [&'static str],
    issuer: Option<String>,
    audience: Option<String>,
    /// In seconds.
    skew: u64,
    roles: Roles,
    cache: TokenCache,
}

impl Jwt {
    /// `None` without a key: signed tokens are off.
    pub(super) fn new(config: &config::Jwt) -> Result<Option<Self>> {
        if !config.has_key() {
            return Ok(None);
        }
        let mut keys = Vec::new();
        keys.extend(config.secret.as_ref().map(IssuerKey::secret));
        if let Some(setting) = &config.public_key {
            keys.push(public_key(setting, config.algorithm).context("auth.jwt.public_key")?);
        }
        let jwks = match &config.jwks_url {
            Some(url) => Some(Jwks::new(url, config).context("auth.jwt.jwks_url")?),
            None => None,
        };
        Ok(Some(Self {
            keys,
            jwks,
            algorithms: allowed(config.algorithm),
            issuer: config.issuer.clone(),
            audience: config.audience.clone(),
            skew: config.clock_skew.as_secs(),
            roles: Roles::new(config),
            cache: TokenCache::default(),
        }))
    }

    pub(super) fn identify(&self, text: &str) -> Result<Identity, LoginError> {
        let set = self.jwks.as_ref().and_then(Jwks::current);
        let version = set.as_ref().map(|set| set.fetched_at);
        let now = now();
        if let Some(identity) = self.cache.find(text, version, now) {
            return Ok(identity);
        }
        let token = self.verified(text, set.as_ref().map_or(&[], |set| &set.keys))?;
        self.check(&token, now)?;
        let identity = self.identity(&token)?;
        if let Some(end) = token.claim("exp").and_then(Value::as_u64) {
            let until = end.saturating_add(self.skew);
            self.cache.put(text, &identity, version, until);
        }
        Ok(identity)
    }

    /// A token that a key has signed, whatever it claims.
    fn verified<'a>(&self, text: &'a str, set: &[IssuerKey]) -> Result<Token<'a>, LoginError> {
        let token = Token::parse(text).map_err(|error| match error {
            ParseError::NotAToken => {
                bad("the token is neither known nor a JWT signed with HS256, RS256 or EdDSA")
            }
            ParseError::CriticalHeader => {
                bad("the token has critical headers that are not known here")
            }
        })?;
        if !self.algorithms.contains(&token.algorithm()) {
            return Err(bad("the token's algorithm is not one that is let in"));
        }
        let mut keys = self.keys.iter().chain(set);
        if keys.any(|key| key.may_have_signed(&token) && token.is_signed_by(&key.key)) {
            return Ok(token);
        }
        let may_be_in_a_newer_set = self.jwks.is_some()
            && token.algorithm() != "HS256"
            && !set.iter().any(|key| key.is_named_by(&token));
        Err(if may_be_in_a_newer_set {
            LoginError::UnknownKey
        } else {
            bad("the token is not signed by a key that this server trusts")
        })
    }

    /// A claim that is configured must be there, and right.
    fn check(&self, token: &Token<'_>, now: u64) -> Result<(), LoginError> {
        let required = [
            ("exp", true),
            ("aud", self.audience.is_some()),
            ("iss", self.issuer.is_some()),
        ];
        for (claim, is_required) in required {
            if is_required && token.claim(claim).is_none() {
                return Err(bad(&format!("the token has no {claim}")));
            }
        }
        token
            .check_time(now, self.skew)
            .map_err(|error| match error {
                TimeError::Expired => bad("the token has expired"),
                TimeError::TooEarly => bad("the token is not valid yet"),
                TimeError::Unreadable(claim) => bad(&format!("the token's {claim} cannot be read")),
            })?;
        let is = |claim, text: &Option<String>| {
            text.as_ref().is_none_or(|text| token.names(claim, text))
        };
        if !is("aud", &self.audience) {
            return Err(bad("the token is for another audience"));
        }
        if !is("iss", &self.issuer) {
            return Err(bad("the token is from another issuer"));
        }
        Ok(())
    }

    fn identity(&self, token: &Token<'_>) -> Result<Identity, LoginError> {
        let subject = match token.claim("sub") {
            None => None,
            Some(Value::String(text)) if is_subject(text) => Some(text.clone()),
            Some(_) => {
                return Err(bad(&format!(
                    "the token's sub is not a text of at most {MAX_SUBJECT} characters"
                )));
            }
        };
        let role = self.roles.find(token.claims());
        let role = role.ok_or_else(|| LoginError::NoRole(self.roles.refusal()))?;
        Ok(Identity { subject, role })
    }

    pub(super) async fn renew_keys(&self) -> Result<(), LoginError> {
        match &self.jwks {
            Some(jwks) if jwks.renew().await => Ok(()),
            Some(_) => Err(LoginError::NoKeys),
            None => Ok(()),
        }
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// From PEM, or from the file with it.
fn public_key(setting: &str, algorithm: config::Algorithm) -> Result<IssuerKey> {
    let key = if setting.contains("-----BEGIN") {
        IssuerKey::from_pem(setting)?
    } else {
        let text = fs::read_to_string(setting).with_context(|| format!("cannot read {setting}"))?;
        IssuerKey::from_pem(&text).with_context(|| setting.to_owned())?
    };
    let kind = key.key.algorithm();
    anyhow::ensure!(
        allowed(algorithm).contains(&kind),
        "a key for {kind}, which auth.jwt.algorithm does not let in"
    );
    Ok(key)
}

fn allowed(algorithm: config::Algorithm) -> &'static [&'static str] {
    match algorithm {
        config::Algorithm::Auto => &["HS256", "RS256", "EdDSA"],
        config::Algorithm::Hs256 => &["HS256"],
        config::Algorithm::Rs256 => &["RS256"],
        config::Algorithm::EdDsa => &["EdDSA"],
    }
}

/// PostgreSQL stores no NUL, and a line break would break lists.
fn is_subject(text: &str) -> bool {
    text.chars().count() <= MAX_SUBJECT && !text.contains(char::is_control)
}

fn bad(text: &str) -> LoginError {
    LoginError::BadToken(text.to_owned())
}
