//! Who calls, as routes ask for it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::{StatusCode, request::Parts};
use uuid::Uuid;

use crate::{
    error::Error,
    users::{Accepted, Nobody, Users},
};

/// A known user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub id: Uuid,
    pub is_superuser: bool,
}

/// The same, where data of providers goes in or out: zndraw-joblib has other words there for
/// somebody unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader(pub Caller);

/// Who reads a list: where the settings leave lists open, perhaps nobody known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visitor(pub Option<Caller>);

/// A state of routes that ask who calls.
pub trait HasUsers {
    fn users(&self) -> &Users;
}

impl HasUsers for Arc<Users> {
    fn users(&self) -> &Users {
        self
    }
}

impl Caller {
    /// Whose things this caller may touch: anybody's, or only its own.
    #[must_use]
    pub fn own(self) -> Option<Uuid> {
        (!self.is_superuser).then_some(self.id)
    }

    /// Whether what is asked of a provider of this user's is for this caller.
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

impl<S: HasUsers + Send + Sync> FromRequestParts<S> for Reader {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let unknown = |words| Error::Detail(StatusCode::UNAUTHORIZED, words);
        match recognised(parts, state).await {
            Ok(caller) => Ok(Self(caller)),
            Err(Nobody::NoToken) => Err(unknown("Not authenticated")),
            Err(Nobody::BadToken) => Err(unknown("Invalid token")),
            Err(Nobody::Failed(error)) => Err(error),
        }
    }
}

impl<S: HasUsers + Send + Sync> FromRequestParts<S> for Visitor {
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

async fn recognised(parts: &Parts, state: &(impl HasUsers + Sync)) -> Result<Caller, Nobody> {
    let (identity, claims) = (parts.extensions.get(), parts.extensions.get());
    let caller = state
        .users()
        .recognise(&parts.headers, identity, claims)
        .await?;
    accept(parts);
    Ok(caller)
}

/// A token that is due may be followed by another.
fn accept(parts: &Parts) {
    if let Some(accepted) = parts.extensions.get::<Accepted>() {
        accepted.set();
    }
}
