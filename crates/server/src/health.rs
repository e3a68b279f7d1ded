//! `/livez` and `/readyz`, and `/health` for clients of Queen.

use std::{fmt, time::Duration};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_store::Error;
use wakeline_web::{Params, Problem, ProblemDocument};

use crate::ServerState;

/// A database that takes longer counts as not ready.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn router(shared: ServerState) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(health))
        .with_state(shared)
}

/// The process runs.
#[utoipa::path(get, path = "/livez", tag = "server", responses((status = 200, description = "It runs")))]
async fn livez() -> &'static str {
    "live\n"
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Readiness {
    status: &'static str,
    store: StoreReadiness,
    bus: BusReadiness,
    /// Requests held at this moment.
    waiters: usize,
}

#[derive(Debug, Serialize, ToSchema)]
struct StoreReadiness {
    /// `sqlite` or `postgres`
    kind: &'static str,
    answers: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BusReadiness {
    /// `memory`, `postgres` or `redis`
    kind: &'static str,
    /// `in-process`, `live`, or `polling` while the bus does not answer
    mode: &'static str,
    /// Round trip of the last canary.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trip_ms: Option<f64>,
    connects: u64,
}

/// Whether the node takes requests: the store answers and the node is not stopping. A bus that does
/// not answer only costs latency and does not make the node unready; `?verbose` shows its mode.
#[utoipa::path(
    get, path = "/readyz", tag = "server",
    params(("verbose" = Option<String>, Query, description = "Show the store, the bus and the waiters")),
    responses(
        (status = 200, description = "Ready", body = Readiness),
        (status = 503, description = "Not ready", body = ProblemDocument<'static>),
    )
)]
async fn readyz(State(shared): State<ServerState>, params: Params) -> Response {
    let trouble = store_trouble(&shared).await;
    let is_stopping = shared.stopping.is_received();
    let is_ready = trouble.is_none() && !is_stopping;
    let is_verbose = params
        .text("verbose")
        .is_some_and(|text| !matches!(text, "false" | "0"));
    if is_verbose {
        let status = if is_ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        let bus = shared.bus.status();
        let readiness = Readiness {
            status: match (is_ready, is_stopping) {
                (true, _) => "ready",
                (false, true) => "draining",
                (false, false) => "unready",
            },
            store: StoreReadiness {
                kind: shared.stores.kind(),
                answers: trouble.as_ref().is_none_or(StoreTrouble::is_disk_full),
                error: trouble.as_ref().map(ToString::to_string),
            },
            bus: BusReadiness {
                kind: bus.kind,
                mode: bus.mode.name(),
                round_trip_ms: bus.round_trip.map(|trip| trip.as_secs_f64() * 1e3),
                connects: bus.connects,
            },
            waiters: shared.engine.held(),
        };
        return (status, Json(readiness)).into_response();
    }
    match trouble {
        _ if is_stopping => Problem::unavailable("draining", "the server is shutting down"),
        Some(trouble) => trouble.problem(),
        None => return "ready\n".into_response(),
    }
    .into_response()
}

/// Why the store is not ready.
enum StoreTrouble {
    Error(Error),
    Silence,
}

impl StoreTrouble {
    fn is_disk_full(&self) -> bool {
        matches!(self, Self::Error(error) if error.is_disk_full())
    }

    fn problem(&self) -> Problem {
        if self.is_disk_full() {
            return Problem::unavailable(
                "disk-full",
                "the disk of the database is full: what needs more room is refused until there is \
                 room again; make room there",
            );
        }
        Problem::unavailable("store-unavailable", self.to_string())
    }
}

impl fmt::Display for StoreTrouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(out),
            Self::Silence => write!(out, "no answer within {} s", PATIENCE.as_secs()),
        }
    }
}

async fn store_trouble(shared: &ServerState) -> Option<StoreTrouble> {
    match timeout(PATIENCE, shared.stores.ping()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(StoreTrouble::Error(error)),
        Err(_) => Some(StoreTrouble::Silence),
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// `healthy` or `unhealthy`
    status: &'static str,
    /// `connected` or `disconnected`
    database: &'static str,
    engine: &'static str,
    version: &'static str,
}

/// Whether the node takes requests, in Queen's form.
#[utoipa::path(
    get, path = "/health", tag = "server",
    responses(
        (status = 200, description = "Healthy", body = Health),
        (status = 503, description = "Not healthy", body = Health),
    )
)]
async fn health(State(shared): State<ServerState>) -> (StatusCode, Json<Health>) {
    let trouble = store_trouble(&shared).await;
    let answers = trouble.as_ref().is_none_or(StoreTrouble::is_disk_full);
    let is_healthy = trouble.is_none() && !shared.stopping.is_received();
    let (code, status) = if is_healthy {
        (StatusCode::OK, "healthy")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "unhealthy")
    };
    let health = Health {
        status,
        database: if answers { "connected" } else { "disconnected" },
        engine: "wakeline",
        version: env!("CARGO_PKG_VERSION"),
    };
    (code, Json(health))
}
