//! `/v1/durable`: what a durable schema holds, read-only.
//!
//! Here and not in the door's crate: that is a library for programs that serve no HTTP.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_durable::view::{
    DEFAULT_PAGE, Detail, Filter, HistoryPage, InstancePage, MAX_PAGE, Totals, View, ViewError,
};
use wakeline_store::postgres;
use wakeline_web::{Params, Problem, ProblemDocument, Right, path, require};

use crate::config::{Config, Store};

/// The schema where only a database is given: the provider's own default.
const DEFAULT_SCHEMA: &str = "durable";
/// Connections for looking.
const CONNECTIONS: usize = 2;

/// Nothing, if none is configured. The database is not asked before somebody looks.
pub(crate) fn view(config: &Config) -> Option<Arc<View>> {
    let durable = &config.durable;
    let url = match (&durable.database, &config.store) {
        (Some(url), _) => url,
        (None, Store::Postgres(url)) if durable.schema.is_some() => url,
        (None, _) => return None,
    };
    let schema = durable.schema.as_deref().unwrap_or(DEFAULT_SCHEMA);
    let pool = postgres::Options {
        connections: CONNECTIONS,
        connect_timeout: config.postgres.connect_timeout,
        statement_timeout: config.postgres.statement_timeout,
        ..postgres::Options::default()
    };
    Some(Arc::new(View::new(url.expose(), schema, pool)))
}

pub(crate) fn router(view: Option<Arc<View>>) -> OpenApiRouter {
    let routes = OpenApiRouter::new()
        .routes(routes!(totals))
        .routes(routes!(instances))
        .routes(routes!(instance))
        .routes(routes!(history));
    require(routes, Right::Read).with_state(Shown(view))
}

#[derive(Clone, Debug)]
struct Shown(Option<Arc<View>>);

impl Shown {
    fn view(&self) -> Result<&View, Problem> {
        self.0.as_deref().ok_or_else(|| {
            Problem::not_found(
                "this server shows no durable schema; durable.schema and durable.database say which",
            )
        })
    }
}

fn problem(error: ViewError) -> Problem {
    use wakeline_store::Error as Store;
    match &error {
        ViewError::UnknownInstance(_) | ViewError::UnknownExecution { .. } => {
            return Problem::not_found(error.to_string());
        }
        ViewError::Place(_) => return Problem::invalid("after", error.to_string()),
        _ => {}
    }
    // The log keeps the database's words; the caller is told what to do.
    tracing::warn!(%error, "the durable schema cannot be shown");
    match error {
        ViewError::Schema(text) => Problem::unavailable("durable-schema", text),
        ViewError::Store(Store::Failed(_)) => Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "store-failed",
            "the database refused to show it, and the log says why",
        ),
        _ => Problem::unavailable(
            "store-unavailable",
            "the database of the durable schema cannot be reached; try again later",
        ),
    }
}

fn page(params: &Params) -> Result<u32, Problem> {
    let limit = params.number("limit", &(1..=MAX_PAGE))?;
    Ok(limit.unwrap_or(DEFAULT_PAGE))
}

/// How many instances there are in which state, and what waits in the queues.
#[utoipa::path(
    get, path = "/v1/durable", tag = "durable",
    responses(
        (status = 200, body = Totals, description = "The numbers"),
        (status = 404, body = ProblemDocument<'static>, description = "No durable schema is shown", content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument<'static>, description = "The database is away, or the schema is not there", content_type = "application/problem+json"),
    )
)]
async fn totals(State(shown): State<Shown>) -> Result<Json<Totals>, Problem> {
    Ok(Json(shown.view()?.totals().await.map_err(problem)?))
}

/// Instances, the newest first. With a filter a page may be short, or empty, although it has a
/// `next`: one call looks at 5,000 instances at most.
#[utoipa::path(
    get, path = "/v1/durable/instances", tag = "durable",
    params(
        ("status" = Option<String>, Query, description = "Running, Completed, Failed or ContinuedAsNew"),
        ("name" = Option<String>, Query, description = "The orchestration's name, exactly"),
        ("limit" = Option<u32>, Query, description = "Rows at most, 1 to 1000; 100 by default"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses(
        (status = 200, body = InstancePage, description = "A page of them"),
        (status = 400, body = ProblemDocument<'static>, description = "Refused; the parameter is named", content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument<'static>, description = "No durable schema is shown", content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument<'static>, description = "The database is away, or the schema is not there", content_type = "application/problem+json"),
    )
)]
async fn instances(
    State(shown): State<Shown>,
    params: Params,
) -> Result<Json<InstancePage>, Problem> {
    let view = shown.view()?;
    let status = params.text("status").map(str::parse).transpose();
    let filter = Filter {
        status: status.map_err(|refused: String| Problem::invalid("status", refused))?,
        name: params.text("name").map(str::to_owned),
        limit: page(&params)?,
        after: params.text("after").map(str::to_owned),
    };
    Ok(Json(view.instances(&filter).await.map_err(problem)?))
}

/// One instance: its result, custom status, values, queue, children and executions. Of each list
/// the first 100 are shown, of each text the first 64 KiB.
#[utoipa::path(
    get, path = "/v1/durable/instances/{id}", tag = "durable",
    params(("id" = String, Path, description = "The instance")),
    responses(
        (status = 200, body = Detail, description = "The instance"),
        (status = 404, body = ProblemDocument<'static>, description = "Unknown, or no durable schema is shown", content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument<'static>, description = "The database is away, or the schema is not there", content_type = "application/problem+json"),
    )
)]
async fn instance(
    State(shown): State<Shown>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<Detail>, Problem> {
    let view = shown.view()?;
    Ok(Json(view.instance(&path(id)?).await.map_err(problem)?))
}

/// The history of an execution, in order. A page ends after `limit` events, or sooner when it has
/// grown to 4 MiB.
#[utoipa::path(
    get, path = "/v1/durable/instances/{id}/history", tag = "durable",
    params(
        ("id" = String, Path, description = "The instance"),
        ("execution" = Option<u64>, Query, description = "The current one by default"),
        ("limit" = Option<u32>, Query, description = "Events at most, 1 to 1000; 100 by default"),
        ("after" = Option<u64>, Query, description = "`next` of the page before"),
    ),
    responses(
        (status = 200, body = HistoryPage, description = "A page of it"),
        (status = 400, body = ProblemDocument<'static>, description = "Refused; the parameter is named", content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument<'static>, description = "Unknown, or no durable schema is shown", content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument<'static>, description = "The database is away, or the schema is not there", content_type = "application/problem+json"),
    )
)]
async fn history(
    State(shown): State<Shown>,
    id: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Json<HistoryPage>, Problem> {
    // A number that PostgreSQL has.
    const ANY: std::ops::RangeInclusive<u64> = 0..=(1 << 62);
    let view = shown.view()?;
    let execution = params.number("execution", &ANY)?;
    let after = params.number("after", &ANY)?.unwrap_or(0);
    let limit = page(&params)?;
    let found = view.history(&path(id)?, execution, after, limit).await;
    Ok(Json(found.map_err(problem)?))
}
