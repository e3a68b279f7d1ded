//! Routes that ask who calls.

use axum::{extract::FromRequestParts, http::request::Parts};

use crate::{caller::Caller, error::Error};

/// Who calls, as whoever looked at the token has put it into the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed(pub(super) Caller);

impl<S: Send + Sync> FromRequestParts<S> for Signed {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Error> {
        let caller = parts.extensions.get().copied();
        caller.map(Self).ok_or_else(Error::unauthorized)
    }
}
