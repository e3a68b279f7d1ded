//! The extractors of the caller.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::{StatusCode, request::Parts};
use uuid::Uuid;

use crate::{
    error::Error,
    users::{IdentifyError, TokenAccepted, Users},
};

/// The user who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub id: Uuid,
    pub is_superuser: bool,
}

/// The same, for the routes of providers' data, where zndraw-joblib refuses in other words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderCaller(pub Caller);

/// The caller who reads a list: perhaps unknown, where the settings leave lists open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCaller(pub Option<Caller>);

/// The state of routes that need the caller.
pub trait HasUsers {
    fn users(&self) -> &Users;
}

impl HasUsers for Arc<Users> {
    fn users(&self) -> &Users {
        self
    }
}

impl Caller {
    /// The user whose workers and providers this caller may change; `None`: those of all users.
    #[must_use]
    pub fn own(self) -> Option<Uuid> {
        (!self.is_superuser).then_some(self.id)
    }

    /// Whether requests to a provider of this user are for this caller.
    #[must_use]
    pub fn may_answer_for(self, user: Uuid) -> bool {
        self.is_superuser || self.id == user
    }
}

impl<S: HasUsers + Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        Ok(recognised(parts, state).await?)
    }
}

impl<S: HasUsers + Send + Sync> FromRequestParts<S> for ProviderCaller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let unknown = |words| Error::Detail(StatusCode::UNAUTHORIZED, words);
        match recognised(parts, state).await {
            Ok(caller) => Ok(Self(caller)),
            Err(IdentifyError::NoToken) => Err(unknown("Not authenticated")),
            Err(IdentifyError::BadToken) => Err(unknown("Invalid token")),
            Err(IdentifyError::Failed(error)) => Err(error),
        }
    }
}

impl<S: HasUsers + Send + Sync> FromRequestParts<S> for ListCaller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let (identity, claims) = (parts.extensions.get(), parts.extensions.get());
        let visitor = state
            .users()
            .may_list(&parts.headers, identity, claims)
            .await?;
        if visitor.is_some() {
            accept(parts);
        }
        Ok(Self(visitor))
    }
}

async fn recognised(
    parts: &Parts,
    state: &(impl HasUsers + Sync),
) -> Result<Caller, IdentifyError> {
    let (identity, claims) = (parts.extensions.get(), parts.extensions.get());
    let caller = state
        .users()
        .recognise(&parts.headers, identity, claims)
        .await?;
    accept(parts);
    Ok(caller)
}

/// A token that is due may be refreshed.
fn accept(parts: &Parts) {
    if let Some(accepted) = parts.extensions.get::<TokenAccepted>() {
        accepted.set();
    }
}
