//! The caller: a user by a token of one of the providers, or an anonymous one where that is
//! allowed.

mod providers;
pub mod users;

use std::{
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use futures_util::future::BoxFuture;
use http::{HeaderMap, header};
use serde_json::Value;
use wakeline_web::token::{Key, Token};

use crate::{policy::files, store::Principal};
use providers::{Keys, Provider, Providers};

pub(crate) use users::user_fact;
pub use users::{Error as UserError, USER, User, Users};

/// A longer id is not kept with a key.
const MAX_SUBJECT: usize = 255;
/// How far the issuer's clock may be from ours, in seconds.
const SKEW: u64 = 60;

/// Where key sets are read: the server has a client for it.
pub trait KeySource: Send + Sync + std::fmt::Debug {
    /// The key named `id` of the set at `uri`: fetched when it is first needed, kept, and fetched
    /// anew for a name that is not in it. `Ok(None)` if it is not there then.
    fn key<'a>(
        &'a self,
        uri: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Key>, KeysUnavailable>>;
}

/// The key set cannot be fetched now.
#[derive(Debug, thiserror::Error)]
#[error("the keys of the issuer cannot be fetched; nothing was done, try again later")]
pub struct KeysUnavailable;

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// `None`: anonymous.
    pub principal: Option<Principal>,
    pub display_name: String,
}

impl Caller {
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            principal: None,
            display_name: String::new(),
        }
    }
}

/// Why a caller is refused: 401 with this text, but 503 for [`LoginError::Unavailable`].
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("No token")]
    NoToken,
    #[error("Invalid token")]
    Token,
    #[error("Invalid subject")]
    Subject,
    #[error("Invalid issuer")]
    Issuer,
    #[error("Invalid audience")]
    Audience,
    #[error("Invalid signature")]
    Signature,
    #[error("Token expired")]
    Expired,
    #[error(transparent)]
    Unavailable(#[from] KeysUnavailable),
}

/// The providers, and whether anonymous callers are allowed.
#[derive(Debug)]
pub struct Login {
    providers: Vec<Provider>,
    anonymous: bool,
    keys: Arc<dyn KeySource>,
}

impl Login {
    /// From a directory with `*.provider` files, or the marker `allow-anonymous`, or both.
    pub fn read(directory: &Path, keys: Arc<dyn KeySource>) -> Result<Self, files::Error> {
        let Providers {
            providers,
            anonymous,
        } = Providers::read(directory)?;
        Ok(Self {
            providers,
            anonymous,
            keys,
        })
    }

    /// The caller of a request. `OPTIONS` has no login.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Caller, LoginError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.identify_at(headers, now.unwrap_or_default().as_secs())
            .await
    }

    /// The same at a time, in seconds since 1970.
    pub async fn identify_at(&self, headers: &HeaderMap, now: u64) -> Result<Caller, LoginError> {
        let Some(given) = headers.get(header::AUTHORIZATION) else {
            return self.without_token();
        };
        let given = given.to_str().map_err(|_| LoginError::Token)?;
        match given.trim_ascii().split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                self.named(token.trim_ascii(), now).await
            }
            // Another scheme than Bearer counts as no token.
            _ => self.without_token(),
        }
    }

    fn without_token(&self) -> Result<Caller, LoginError> {
        if self.anonymous {
            Ok(Caller::anonymous())
        } else {
            Err(LoginError::NoToken)
        }
    }

    async fn named(&self, token: &str, now: u64) -> Result<Caller, LoginError> {
        let token = Token::parse(token).map_err(|_| LoginError::Token)?;
        let key_id = token.key_id().ok_or(LoginError::Token)?;
        let text = |claim| token.claim(claim).and_then(Value::as_str);
        let subject = text("sub").filter(|subject| is_subject(subject));
        let subject = subject.ok_or(LoginError::Subject)?;
        let mut known = self.of(|provider| text("iss") == Some(&*provider.issuer));
        if known.is_empty() {
            return Err(LoginError::Issuer);
        }
        known.retain(|provider| text("aud") == Some(&*provider.audience));
        if known.is_empty() {
            return Err(LoginError::Audience);
        }
        for provider in known {
            let Some(key) = self.key(provider, key_id).await? else {
                continue;
            };
            if token.is_signed_by(&key) {
                token
                    .check_time(now, SKEW)
                    .map_err(|_| LoginError::Expired)?;
                return Ok(Caller {
                    principal: Some(Principal {
                        provider: provider.name.clone(),
                        id: subject.to_owned(),
                    }),
                    display_name: text("display_name").unwrap_or_default().to_owned(),
                });
            }
        }
        Err(LoginError::Signature)
    }

    fn of(&self, is_wanted: impl Fn(&Provider) -> bool) -> Vec<&Provider> {
        let providers = self.providers.iter();
        providers.filter(|provider| is_wanted(provider)).collect()
    }

    async fn key(&self, provider: &Provider, id: &str) -> Result<Option<Key>, KeysUnavailable> {
        match &provider.keys {
            Keys::Fixed { id: known, key } if known == id => Ok(Some(key.clone())),
            Keys::Fixed { .. } => Ok(None),
            Keys::Set(uri) => self.keys.key(uri, id).await,
        }
    }
}

/// PostgreSQL takes no NUL, and a line break would break lists.
fn is_subject(text: &str) -> bool {
    let length = text.chars().count();
    (1..=MAX_SUBJECT).contains(&length) && !text.contains(char::is_control)
}
