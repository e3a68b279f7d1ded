//! `POST /api/v1/lease/{leaseId}/extend`

use std::time::Duration;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wakeline_web::{LimitedBody, Problem};

use super::{
    Answer, Door,
    query::{PathNames, optional_json},
    refusals::BadField,
    time_text,
};

const DEFAULT_SECONDS: u64 = 60;

#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct ExtendBody {
    /// From now on; 60 by default. A lease is never shortened.
    seconds: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExtendAnswer {
    lease_id: String,
    success: bool,
    /// The number of partitions under the lease.
    renewed: usize,
    new_expires_at: Option<String>,
    expires_at: Option<String>,
    #[serde(rename = "lease_expires_at")]
    lease_expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    /// The same as `error` in one word: `lease_lost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

/// Extends a lease. An expired lease stays expired.
#[utoipa::path(
    post, path = "/api/v1/lease/{leaseId}/extend", tag = "queue",
    params(("leaseId" = String, Path)),
    request_body(content = ExtendBody, description = "May be empty"),
    responses(
        (status = 200, description = "`success` says whether the lease was valid", body = ExtendAnswer),
        BadField,
    )
)]
pub(super) async fn extend(
    State(door): Door,
    PathNames(lease_id): PathNames<String>,
    LimitedBody(body): LimitedBody,
) -> Answer<ExtendAnswer> {
    let body: ExtendBody = optional_json(&body)?;
    let seconds = body.seconds.unwrap_or(DEFAULT_SECONDS);
    let most = door.limits().max_lease.as_secs();
    if !(1..=most).contains(&seconds) {
        let range = format!("must be from 1 to {most}");
        return Err(Problem::invalid("seconds", range));
    }
    let extended = match lease_id.parse() {
        Ok(lease) => door.extend(lease, Duration::from_secs(seconds)).await?,
        Err(_) => None,
    };
    let until = extended.map(|(_, until)| time_text(until));
    let lost = "the lease is not known, released or expired";
    Ok(Json(ExtendAnswer {
        lease_id,
        success: extended.is_some(),
        renewed: extended.map_or(0, |(count, _)| count),
        new_expires_at: until.clone(),
        expires_at: until.clone(),
        lease_expires_at: until,
        error: extended.is_none().then_some(lost),
        code: extended.is_none().then_some("lease_lost"),
    }))
}
