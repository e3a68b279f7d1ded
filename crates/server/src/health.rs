//! `/livez` and `/readyz`, and `/health` for clients of Queen.

use std::time::Duration;

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
use wakeline_web::{Params, Problem, ProblemDocument};

use crate::ServerState;

/// A database that takes longer counts as not ready.
const PATIENCE: Duration = Duration::from_secs(2);
const DISK_FULL: &str = "the disk of the database is full: what needs more room is refused until \
                         there is room again; make room there";

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
    /// `ready`, `degraded` while the disk of the database is full, `draining` or `unready`
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
/// not answer only costs latency and does not make the node unready; `?verbose` shows its mode. A full
/// disk does not either: a load balancer would take the node's consumers away, whose pops, acks and
/// deletes make room. The answer says `degraded` then.
#[utoipa::path(
    get, path = "/readyz", tag = "server",
    params(("verbose" = Option<String>, Query, description = "Show the store, the bus and the waiters")),
    responses(
        (status = 200, description = "Ready", body = Readiness),
        (status = 503, description = "Not ready", body = ProblemDocument<'static>),
    )
)]
async fn readyz(State(shared): State<ServerState>, params: Params) -> Response {
    let store = check_store(&shared).await;
    let is_stopping = shared.stopping.is_received();
    let is_verbose = params
        .text("verbose")
        .is_some_and(|text| !matches!(text, "false" | "0"));
    if is_verbose {
        let bus = shared.bus.status();
        let (code, status) = match &store {
            _ if is_stopping => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
            StoreHealth::Answers => (StatusCode::OK, "ready"),
            StoreHealth::DiskFull => (StatusCode::OK, "degraded"),
            StoreHealth::Trouble(_) => (StatusCode::SERVICE_UNAVAILABLE, "unready"),
        };
        let readiness = Readiness {
            status,
            store: StoreReadiness {
                kind: shared.stores.kind(),
                answers: store.answers(),
                error: store.error(),
            },
            bus: BusReadiness {
                kind: bus.kind,
                mode: bus.mode.name(),
                round_trip_ms: bus.round_trip.map(|trip| trip.as_secs_f64() * 1e3),
                connects: bus.connects,
            },
            waiters: shared.engine.held(),
        };
        return (code, Json(readiness)).into_response();
    }
    match store {
        _ if is_stopping => {
            Problem::unavailable("draining", "the server is shutting down").into_response()
        }
        StoreHealth::Answers => "ready\n".into_response(),
        StoreHealth::DiskFull => format!("ready\ndegraded: {DISK_FULL}\n").into_response(),
        StoreHealth::Trouble(error) => {
            Problem::unavailable("store-unavailable", error).into_response()
        }
    }
}

enum StoreHealth {
    Answers,
    /// It answers, and refuses what needs more room.
    DiskFull,
    /// Why it does not.
    Trouble(String),
}

impl StoreHealth {
    fn answers(&self) -> bool {
        !matches!(self, Self::Trouble(_))
    }

    fn error(self) -> Option<String> {
        match self {
            Self::Answers => None,
            Self::DiskFull => Some(DISK_FULL.to_owned()),
            Self::Trouble(error) => Some(error),
        }
    }
}

async fn check_store(shared: &ServerState) -> StoreHealth {
    match timeout(PATIENCE, shared.stores.ping()).await {
        Ok(Ok(())) => StoreHealth::Answers,
        Ok(Err(error)) if error.is_disk_full() => StoreHealth::DiskFull,
        Ok(Err(error)) => StoreHealth::Trouble(error.to_string()),
        Err(_) => StoreHealth::Trouble(format!("no answer within {} s", PATIENCE.as_secs())),
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
    let answers = check_store(&shared).await.answers();
    let is_healthy = answers && !shared.stopping.is_received();
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
