//! The body of a request that needs no login.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::StatusCode;
use wakeline_web::{LimitedBody, Limits};

use crate::{error::Error, problem};

/// Bytes of a login, a registration or a change of a user: an email and a password in any encoding
/// take less than half of it.
pub(super) const MAX_SMALL_BODY: usize = 16 << 10;

/// A body of at most [`MAX_SMALL_BODY`]. A longer one is refused before it is read: a caller who has
/// not logged in must not fill the memory.
#[derive(Clone, Debug)]
pub(super) struct SmallBody(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for SmallBody {
    type Rejection = Error;

    async fn from_request(mut request: Request, state: &S) -> Result<Self, Error> {
        let limits: Limits = request.extensions().get().copied().unwrap_or_default();
        let max_body = limits.max_body.min(MAX_SMALL_BODY);
        let limits = Limits { max_body, ..limits };
        request.extensions_mut().insert(limits);
        match LimitedBody::from_request(request, state).await {
            Ok(LimitedBody(body)) => Ok(Self(body)),
            Err(refusal) if refusal.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                Err(Error::problem(
                    &problem::BODY_TOO_LARGE,
                    format!(
                        "body: longer than {max_body} bytes, the limit of this route; nothing was done"
                    ),
                ))
            }
            Err(refusal) => Err(refusal.into()),
        }
    }
}
