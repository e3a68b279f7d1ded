//! Who is let in: with one of `auth.tokens`, or with a token that a key of `auth.jwt` has signed.

pub(crate) mod jwks;
mod jwt;
mod key;
mod ring_provider;
mod roles;
mod seen;
#[cfg(test)]
mod tests;

use anyhow::Result;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use wakeline_web::{Identity, Problem, Role, forbidden};

use crate::config::{Config, Secret};
use jwt::Jwt;

/// Open whatever is configured: a supervisor asks them.
const PROBES: [&str; 2] = ["/livez", "/readyz"];

#[derive(Debug)]
pub(crate) struct Auth {
    tokens: Vec<Secret>,
    jwt: Option<Jwt>,
    /// Besides the probes.
    open: Vec<String>,
}

/// Why somebody is not let in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("Authorization: send Bearer and a token")]
    NoToken,
    #[error("Authorization: {0}")]
    BadToken(String),
    /// A newer key set may have its key: [`Auth::renew_keys`], then ask again.
    #[error("Authorization: the token is signed with a key that this server does not know")]
    UnknownKey,
    #[error("the keys of the issuer cannot be fetched; nothing was done, try again later")]
    NoKeys,
    #[error("{0}")]
    NoRole(String),
}

impl Auth {
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let jwt = Jwt::new(&config.jwt)?;
        Ok(Self {
            tokens: config.auth.tokens.clone(),
            open: match jwt {
                Some(_) => config.jwt.skip_paths.clone(),
                None => Vec::new(),
            },
            jwt,
        })
    }

    /// No login is asked for anywhere.
    pub(crate) fn is_off(&self) -> bool {
        self.tokens.is_empty() && self.jwt.is_none()
    }

    /// No login is asked for here.
    pub(crate) fn is_open(&self, path: &str) -> bool {
        PROBES.contains(&path) || self.open.iter().any(|open| open == path)
    }

    /// `None` where no login is asked for.
    pub(crate) fn identify(
        &self,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Option<Identity>, Refused> {
        if self.is_off() || self.is_open(path) {
            return Ok(None);
        }
        let token = token(headers).ok_or(Refused::NoToken)?;
        if self.is_known(token) {
            return Ok(Some(Identity {
                subject: None,
                role: Role::Admin,
            }));
        }
        let unknown = || Refused::BadToken("the token is not known to this server".to_owned());
        let jwt = self.jwt.as_ref().ok_or_else(unknown)?;
        let token = str::from_utf8(token).map_err(|_| unknown())?;
        jwt.identify(token).map(Some)
    }

    /// Fetches the key set, unless it was fetched just now.
    pub(crate) async fn renew_keys(&self) -> Result<(), Refused> {
        match &self.jwt {
            Some(jwt) => jwt.renew_keys().await,
            None => Ok(()),
        }
    }

    fn is_known(&self, token: &[u8]) -> bool {
        self.tokens
            .iter()
            .any(|known| is_same(known.expose().as_bytes(), token))
    }
}

/// What follows `Bearer`; or all of it: Queen's clients may send the bare token.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer";
    let given = headers.get(header::AUTHORIZATION)?;
    let given = HeaderValue::as_bytes(given).trim_ascii();
    let token = match given.split_at_checked(SCHEME.len()) {
        Some((scheme, [])) if scheme.eq_ignore_ascii_case(SCHEME) => b"",
        Some((scheme, rest @ [b' ', ..])) if scheme.eq_ignore_ascii_case(SCHEME) => {
            rest.trim_ascii()
        }
        _ => given,
    };
    (!token.is_empty()).then_some(token)
}

/// Takes the same time wherever the difference is, so that a token cannot be guessed byte by byte.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let text = refused.to_string();
        match refused {
            Refused::NoToken => Self::new(StatusCode::UNAUTHORIZED, "unauthorized", text)
                .with_error("Authentication required"),
            Refused::BadToken(_) | Refused::UnknownKey => {
                Self::new(StatusCode::UNAUTHORIZED, "unauthorized", text)
            }
            Refused::NoKeys => Self::unavailable("keys-unavailable", text),
            Refused::NoRole(_) => forbidden(text),
        }
    }
}
