//! The caller's user.

use axum::{extract::State, response::Response};

use super::{Door, answer};
use crate::{error::Error, login::Caller};

/// The caller's fact and profile.
///
/// The first call makes the caller's key and fact.
#[utoipa::path(
    get, path = "/jinaga/login", tag = "feed",
    responses(
        (status = 200, description = "`userFact` and `profile`", content_type = "application/json"),
        (status = 401, description = "Nobody is logged in", content_type = "text/plain", body = String),
    ),
)]
pub(super) async fn login(State(door): State<Door>, caller: Caller) -> Result<Response, Error> {
    let user = door.feeds.user(&caller).await?;
    let user = user.ok_or_else(|| Error::Unauthorized("Unauthorized".to_owned()))?;
    Ok(answer::json(user.login_answer(&caller.display_name)))
}
