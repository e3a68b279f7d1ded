//! The caller of routes behind [`super::sign`].

use axum::{extract::FromRequestParts, http::request::Parts};

use crate::{caller::Caller, error::Error};

/// The caller, as the middleware has put it into the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignedCaller(pub(super) Caller);

impl<S: Send + Sync> FromRequestParts<S> for SignedCaller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let caller = parts.extensions.get().copied();
        caller.map(Self).ok_or_else(Error::unauthorized)
    }
}
