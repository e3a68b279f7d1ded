//! Signed tokens: which keys are asked, which claims are checked, who it is then.

use std::{fs, sync::Arc};

use anyhow::{Context, Result};
use jsonwebtoken::{
    Algorithm, Header, Validation, decode, decode_header, errors::ErrorKind, get_current_timestamp,
};
use serde_json::Value;
use wakeline_web::Identity;

use super::{
    Refused,
    jwks::Jwks,
    key::Key,
    ring_provider,
    roles::{Claims, Roles},
    seen::Seen,
};
use crate::config;

/// A subject is kept with every message that it pushes.
const MAX_SUBJECT: usize = 255;

#[derive(Debug)]
pub(super) struct Jwt {
    /// From the configuration.
    keys: Vec<Key>,
    jwks: Option<Arc<Jwks>>,
    /// One per algorithm that is let in.
    validations: Vec<Validation>,
    /// In seconds.
    skew: u64,
    roles: Roles,
    seen: Seen,
}

impl Jwt {
    /// `None` without a key: signed tokens are off.
    pub(super) fn new(config: &config::Jwt) -> Result<Option<Self>> {
        if !config.has_key() {
            return Ok(None);
        }
        ring_provider::install();
        let mut keys = Vec::new();
        keys.extend(config.secret.as_ref().map(Key::secret));
        if let Some(given) = &config.public_key {
            keys.push(public_key(given, config.algorithm).context("auth.jwt.public_key")?);
        }
        let jwks = match &config.jwks_url {
            Some(url) => Some(Jwks::new(url, config).context("auth.jwt.jwks_url")?),
            None => None,
        };
        let algorithms = allowed(config.algorithm).iter();
        Ok(Some(Self {
            keys,
            jwks,
            validations: algorithms.map(|one| validation(*one, config)).collect(),
            skew: config.clock_skew.as_secs(),
            roles: Roles::new(config),
            seen: Seen::default(),
        }))
    }

    pub(super) fn identify(&self, token: &str) -> Result<Identity, Refused> {
        let set = self.jwks.as_ref().and_then(Jwks::known);
        let version = set.as_ref().map(|set| set.since);
        let known = self.seen.find(token, version, get_current_timestamp());
        if let Some(identity) = known {
            return Ok(identity);
        }
        let set = set.as_ref().map_or(&[][..], |set| &set.keys);
        let claims = self.claims(token, set)?;
        let identity = self.identity(&claims)?;
        if let Some(end) = claims.get("exp").and_then(Value::as_u64) {
            let until = end.saturating_add(self.skew);
            self.seen.keep(token, &identity, version, until);
        }
        Ok(identity)
    }

    /// What a token says that a key has signed and that is valid now.
    fn claims(&self, token: &str, set: &[Key]) -> Result<Claims, Refused> {
        let header = decode_header(token).map_err(refused)?;
        // The issuer demands of whoever reads it to know an extension, and none is known here.
        if header.crit.is_some() {
            return Err(bad(
                "the token has critical headers that are not known here",
            ));
        }
        let mut validations = self.validations.iter();
        let validation = validations
            .find(|one| one.algorithms == [header.alg])
            .ok_or_else(|| bad("the token's algorithm is not one that is let in"))?;
        for key in self.keys.iter().chain(set) {
            if !key.may_have_signed(&header) {
                continue;
            }
            match decode(token, &key.decoding, validation) {
                Ok(token) => return Ok(token.claims),
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => {}
                Err(error) => return Err(refused(error)),
            }
        }
        if self.may_be_in_a_newer_set(&header, set) {
            return Err(Refused::UnknownKey);
        }
        Err(bad(
            "the token is not signed by a key that this server trusts",
        ))
    }

    pub(super) async fn renew_keys(&self) -> Result<(), Refused> {
        match &self.jwks {
            Some(jwks) if jwks.renew().await => Ok(()),
            Some(_) => Err(Refused::NoKeys),
            None => Ok(()),
        }
    }

    fn may_be_in_a_newer_set(&self, header: &Header, set: &[Key]) -> bool {
        self.jwks.is_some()
            && matches!(header.alg, Algorithm::RS256 | Algorithm::EdDSA)
            && !set.iter().any(|key| key.is_named_by(header))
    }

    fn identity(&self, claims: &Claims) -> Result<Identity, Refused> {
        let subject = match claims.get("sub") {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if is_subject(text) => Some(text.clone()),
            Some(_) => {
                return Err(bad(&format!(
                    "the token's sub is not a text of at most {MAX_SUBJECT} characters"
                )));
            }
        };
        let role = self.roles.find(claims);
        let role = role.ok_or_else(|| Refused::NoRole(self.roles.wanted()))?;
        Ok(Identity { subject, role })
    }
}

/// PEM, or where it is.
fn public_key(given: &str, algorithm: config::Algorithm) -> Result<Key> {
    let key = if given.contains("-----BEGIN") {
        Key::pem(given)?
    } else {
        let text = fs::read_to_string(given).with_context(|| format!("cannot read {given}"))?;
        Key::pem(&text).with_context(|| given.to_owned())?
    };
    anyhow::ensure!(
        allowed(algorithm).contains(&key.algorithm),
        "a key for {:?}, which auth.jwt.algorithm does not let in",
        key.algorithm
    );
    Ok(key)
}

fn allowed(algorithm: config::Algorithm) -> &'static [Algorithm] {
    match algorithm {
        config::Algorithm::Auto => &[Algorithm::HS256, Algorithm::RS256, Algorithm::EdDSA],
        config::Algorithm::Hs256 => &[Algorithm::HS256],
        config::Algorithm::Rs256 => &[Algorithm::RS256],
        config::Algorithm::EdDsa => &[Algorithm::EdDSA],
    }
}

fn validation(algorithm: Algorithm, config: &config::Jwt) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.leeway = config.clock_skew.as_secs();
    validation.validate_nbf = true;
    validation.validate_aud = config.audience.is_some();
    // A claim that is asked for must be there, not only be right if it is.
    let mut required = vec!["exp"];
    if let Some(audience) = &config.audience {
        validation.set_audience(&[audience]);
        required.push("aud");
    }
    if let Some(issuer) = &config.issuer {
        validation.set_issuer(&[issuer]);
        required.push("iss");
    }
    validation.set_required_spec_claims(&required);
    validation
}

/// PostgreSQL takes no NUL, and nobody a line break in a list.
fn is_subject(text: &str) -> bool {
    text.chars().count() <= MAX_SUBJECT && !text.contains(char::is_control)
}

fn bad(text: &str) -> Refused {
    Refused::BadToken(text.to_owned())
}

fn refused(error: jsonwebtoken::errors::Error) -> Refused {
    match error.into_kind() {
        ErrorKind::ExpiredSignature => bad("the token has expired"),
        ErrorKind::ImmatureSignature => bad("the token is not valid yet"),
        ErrorKind::InvalidAudience => bad("the token is for another audience"),
        ErrorKind::InvalidIssuer => bad("the token is from another issuer"),
        ErrorKind::MissingRequiredClaim(claim) => bad(&format!("the token has no {claim}")),
        ErrorKind::InvalidClaimFormat(claim) => bad(&format!("the token's {claim} cannot be read")),
        ErrorKind::InvalidAlgorithm => bad("the token's algorithm is not one that is let in"),
        _ => bad("the token is neither known nor a JWT signed with HS256, RS256 or EdDSA"),
    }
}
