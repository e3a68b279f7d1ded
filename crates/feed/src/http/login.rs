//! Who one is.

use axum::{extract::State, response::Response};

use super::{Door, answer};
use crate::{error::Error, fact::record, json::write_string, login::Caller};

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
    let user = door.feeds.login(&caller).await?;
    let user = user.ok_or_else(|| Error::Unauthorized("Unauthorized".to_owned()))?;
    let mut text = String::from("{\"userFact\":");
    record::write_sent(&mut text, &user.fact);
    text.push_str(",\"profile\":{\"displayName\":");
    write_string(&mut text, &caller.display_name);
    text.push_str("}}");
    Ok(answer::json(text))
}
