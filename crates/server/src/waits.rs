//! `GET /v1/waits`: the held requests, what they wait for, since when and until when.

use axum::{Json, extract::State};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_wake::{Cause, EngineTime, WaiterView};
use wakeline_web::{Params, Problem, ProblemDocument, Right, require};

use crate::ServerState;

const DEFAULT_PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;
const MAX_OFFSET: usize = 100_000_000;

pub(crate) fn router(shared: ServerState) -> OpenApiRouter {
    let routes = OpenApiRouter::new().routes(routes!(waits));
    require(routes, Right::Read).with_state(shared)
}

#[derive(Debug, Serialize, ToSchema)]
struct Waits {
    /// All requests that are held on this node.
    total: usize,
    offset: usize,
    limit: usize,
    waits: Vec<Wait>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Wait {
    #[schema(example = json!(["queue/orders"]))]
    topics: Vec<String>,
    /// Its wait group: at the queue door, the consumer group.
    group: String,
    since: String,
    until: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_wake: Option<LastWake>,
}

#[derive(Debug, Serialize, ToSchema)]
struct LastWake {
    /// `notify`, `timer` or `fallback`
    cause: &'static str,
    at: String,
}

/// The requests that are held on this node, soonest deadline first.
#[utoipa::path(
    get, path = "/v1/waits", tag = "server",
    params(
        ("limit" = Option<usize>, Query, description = "Rows at most, 1 to 1000; 100 by default"),
        ("offset" = Option<usize>, Query, description = "Rows to skip"),
    ),
    responses(
        (status = 200, body = Waits, description = "A page of the waits"),
        (status = 400, body = ProblemDocument<'static>, description = "Refused; the parameter is named", content_type = "application/problem+json"),
    )
)]
async fn waits(State(shared): State<ServerState>, params: Params) -> Result<Json<Waits>, Problem> {
    let limit = params
        .number("limit", &(1..=MAX_PAGE))?
        .unwrap_or(DEFAULT_PAGE);
    let offset = params.number("offset", &(0..=MAX_OFFSET))?.unwrap_or(0);
    let page = shared.engine.page(offset, limit);
    let wall = WallClock {
        engine_now: page.now,
        utc_now: Timestamp::now(),
    };
    let waits = page
        .waiters
        .iter()
        .map(|waiter| wait(waiter, &wall))
        .collect();
    Ok(Json(Waits {
        total: page.total,
        offset,
        limit,
        waits,
    }))
}

/// Converts the engine's times to UTC.
struct WallClock {
    engine_now: EngineTime,
    utc_now: Timestamp,
}

impl WallClock {
    fn at(&self, time: EngineTime) -> String {
        let difference = i64::try_from(time.0).unwrap_or(i64::MAX)
            - i64::try_from(self.engine_now.0).unwrap_or(i64::MAX);
        let at = self
            .utc_now
            .saturating_add(SignedDuration::from_micros(difference));
        at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
            .unwrap_or_default()
    }
}

fn wait(waiter: &WaiterView, wall: &WallClock) -> Wait {
    let group = waiter.keys.first().map(|key| key.group.name().to_owned());
    Wait {
        topics: waiter
            .keys
            .iter()
            .map(|key| key.topic.to_string())
            .collect(),
        group: group.unwrap_or_default(),
        since: wall.at(waiter.since),
        until: wall.at(waiter.until),
        last_wake: waiter.last_wake.map(|(cause, at)| LastWake {
            cause: Cause::name(cause),
            at: wall.at(at),
        }),
    }
}
