//! Identifies callers: by one of `auth.tokens`, or by a token that a key of `auth.jwt` has signed.

pub(crate) mod jwks;
mod jwt;
mod key;
mod roles;
#[cfg(test)]
mod tests;
mod token_cache;

use anyhow::Result;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use wakeline_web::{Identity, Problem, Role, forbidden};

use crate::config::{Config, Secret};
use jwt::Jwt;

/// Open whatever is configured, for supervisors.
const PROBES: [&str; 2] = ["/livez", "/readyz"];

#[derive(Debug)]
pub(crate) struct Auth {
    tokens: Vec<Secret>,
    jwt: Option<Jwt>,
    /// Besides the probes.
    open_paths: Vec<String>,
}

/// Why a caller is not let in.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoginError {
    #[error("Authorization: send Bearer and a token")]
    NoToken,
    #[error("Authorization: {0}")]
    BadToken(String),
    /// A newer key set may have its key: call [`Auth::renew_keys`], then identify again.
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
            open_paths: match jwt {
                Some(_) => config.jwt.skip_paths.clone(),
                None => Vec::new(),
            },
            jwt,
        })
    }

    /// No route needs a login.
    pub(crate) fn is_off(&self) -> bool {
        self.tokens.is_empty() && self.jwt.is_none()
    }

    /// For supervisors: answered to everyone.
    pub(crate) fn is_probe(path: &str) -> bool {
        PROBES.contains(&path)
    }

    /// `path` needs no login.
    pub(crate) fn is_open(&self, path: &str) -> bool {
        Self::is_probe(path) || self.open_paths.iter().any(|open| open == path)
    }

    /// `None` where no login is needed.
    pub(crate) fn identify(
        &self,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Option<Identity>, LoginError> {
        if self.is_off() || self.is_open(path) {
            return Ok(None);
        }
        let token = token(headers).ok_or(LoginError::NoToken)?;
        if self.is_known(token) {
            return Ok(Some(Identity {
                subject: None,
                role: Role::Admin,
            }));
        }
        let unknown = || LoginError::BadToken("the token is not known to this server".to_owned());
        let jwt = self.jwt.as_ref().ok_or_else(unknown)?;
        let token = str::from_utf8(token).map_err(|_| unknown())?;
        jwt.identify(token).map(Some)
    }

    /// Fetches the key set, unless that was done just now.
    pub(crate) async fn renew_keys(&self) -> Result<(), LoginError> {
        match &self.jwt {
            Some(jwt) => jwt.renew_keys().await,
            None => Ok(()),
        }
    }

    fn is_known(&self, token: &[u8]) -> bool {
        self.tokens
            .iter()
            .any(|fixed| is_same(fixed.expose().as_bytes(), token))
    }
}

/// The text after `Bearer`, or the whole header: Queen's clients may send the bare token.
fn token(headers: &HeaderMap) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer";
    let header = headers.get(header::AUTHORIZATION)?;
    let header = HeaderValue::as_bytes(header).trim_ascii();
    let token = match header.split_at_checked(SCHEME.len()) {
        Some((scheme, [])) if scheme.eq_ignore_ascii_case(SCHEME) => b"",
        Some((scheme, rest @ [b' ', ..])) if scheme.eq_ignore_ascii_case(SCHEME) => {
            rest.trim_ascii()
        }
        _ => header,
    };
    (!token.is_empty()).then_some(token)
}

/// Takes the same time wherever the texts differ, so that a token cannot be guessed byte by byte.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

impl From<LoginError> for Problem {
    fn from(error: LoginError) -> Self {
        let text = error.to_string();
        match error {
            LoginError::NoToken => Self::new(StatusCode::UNAUTHORIZED, "unauthorized", text)
                .with_error("Authentication required"),
            LoginError::BadToken(_) | LoginError::UnknownKey => {
                Self::new(StatusCode::UNAUTHORIZED, "unauthorized", text)
            }
            LoginError::NoKeys => Self::unavailable("keys-unavailable", text),
            LoginError::NoRole(_) => forbidden(text),
        }
    }
}
