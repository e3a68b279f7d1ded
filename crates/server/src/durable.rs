//! `/v1/durable`: the instances of a durable schema, read-only.
//!
//! The routes are here because the door's crate is a library for programs that serve no HTTP.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_durable::view::{
    DEFAULT_PAGE, Filter, HistoryPage, InstanceDetail, InstancePage, MAX_PAGE, Totals, View,
    ViewError,
};
use wakeline_store::postgres;
use wakeline_web::{Params, Problem, ProblemDocument, Right, path, require};

use crate::config::{Config, Store};

/// The schema if only a database is configured: the provider's own default.
const DEFAULT_SCHEMA: &str = "durable";
/// Connections of the view.
const CONNECTIONS: usize = 2;

/// None if no schema is configured. It connects at the first request.
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
    require(routes, Right::Read).with_state(DurableState(view))
}

#[derive(Clone, Debug)]
struct DurableState(Option<Arc<View>>);

impl DurableState {
    fn view(&self) -> Result<&View, Problem> {
        self.0.as_deref().ok_or_else(|| {
            Problem::not_found(
                "this server shows no durable schema; set durable.schema or durable.database",
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
        ViewError::PageToken(_) => return Problem::invalid("after", error.to_string()),
        _ => {}
    }
    // The log gets the database's words; the caller gets what to do.
    tracing::warn!(%error, "the durable schema cannot be read");
    match error {
        ViewError::Schema(text) => Problem::unavailable("durable-schema", text),
        ViewError::Store(Store::Failed(_)) => Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "store-failed",
            "the database refused the query; the server's log has the reason",
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

/// Counts instances by state, and the messages and activities that wait.
#[utoipa::path(
    get, path = "/v1/durable", tag = "durable",
    responses(
        (status = 200, body = Totals, description = "The totals"),
        (status = 404, body = ProblemDocument<'static>, description = "No durable schema is shown", content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument<'static>, description = "The database is unavailable, or the schema does not exist", content_type = "application/problem+json"),
    )
)]
async fn totals(State(state): State<DurableState>) -> Result<Json<Totals>, Problem> {
    Ok(Json(state.view()?.totals().await.map_err(problem)?))
}

/// Lists instances, the newest first. With a filter a page may have fewer rows than its limit, or
/// none, although it has a `next`: one call examines at most 5,000 instances.
#[utoipa::path(
    get, path = "/v1/durable/instances", tag = "durable",
    params(
        ("status" = Option<String>, Query, description = "Running, Completed, Failed or ContinuedAsNew"),
        ("name" = Option<String>, Query, description = "The orchestration's name, exactly"),
        ("limit" = Option<u32>, Query, description = "The largest number of rows, 1 to 1000; 100 by default"),
        ("after" = Option<String>, Query, description = "`next` of the previous page"),
    ),
    responses(
        (status = 200, body = InstancePage, description = "A page of instances"),
        (status = 400, body = ProblemDocument<'static>, description = "A parameter is invalid; the problem names it", content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument<'static>, description = "No durable schema is shown", content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument<'static>, description = "The database is unavailable, or the schema does not exist", content_type = "application/problem+json"),
    )
)]
async fn instances(
    State(state): State<DurableState>,
    params: Params,
) -> Result<Json<InstancePage>, Problem> {
    let view = state.view()?;
    let status = params.text("status").map(str::parse).transpose();
    let filter = Filter {
        status: status.map_err(|refused: String| Problem::invalid("status", refused))?,
        name: params.text("name").map(str::to_owned),
        limit: page(&params)?,
        after: params.text("after").map(str::to_owned),
    };
    Ok(Json(view.instances(&filter).await.map_err(problem)?))
}

/// Shows one instance: its result, custom status, values, queue, children and executions. Lists are
/// cut after 100 entries, texts after 64 KiB.
#[utoipa::path(
    get, path = "/v1/durable/instances/{id}", tag = "durable",
    params(("id" = String, Path, description = "The instance's id")),
    responses(
        (status = 200, body = InstanceDetail, description = "The instance"),
        (status = 404, body = ProblemDocument<'static>, description = "The instance or execution does not exist, or no durable schema is shown", content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument<'static>, description = "The database is unavailable, or the schema does not exist", content_type = "application/problem+json"),
    )
)]
async fn instance(
    State(state): State<DurableState>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Json<InstanceDetail>, Problem> {
    let view = state.view()?;
    Ok(Json(view.instance(&path(id)?).await.map_err(problem)?))
}

/// Lists the history of an execution, in order. A page ends after `limit` events, or earlier after
/// 4 MiB.
#[utoipa::path(
    get, path = "/v1/durable/instances/{id}/history", tag = "durable",
    params(
        ("id" = String, Path, description = "The instance's id"),
        ("execution" = Option<u64>, Query, description = "The execution's number; the current execution by default"),
        ("limit" = Option<u32>, Query, description = "The largest number of events, 1 to 1000; 100 by default"),
        ("after" = Option<u64>, Query, description = "`next` of the previous page"),
    ),
    responses(
        (status = 200, body = HistoryPage, description = "A page of events"),
        (status = 400, body = ProblemDocument<'static>, description = "A parameter is invalid; the problem names it", content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument<'static>, description = "The instance or execution does not exist, or no durable schema is shown", content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument<'static>, description = "The database is unavailable, or the schema does not exist", content_type = "application/problem+json"),
    )
)]
async fn history(
    State(state): State<DurableState>,
    id: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Json<HistoryPage>, Problem> {
    // The numbers that PostgreSQL can store.
    const ANY: std::ops::RangeInclusive<u64> = 0..=(1 << 62);
    let view = state.view()?;
    let execution = params.number("execution", &ANY)?;
    let after = params.number("after", &ANY)?.unwrap_or(0);
    let limit = page(&params)?;
    let found = view.history(&path(id)?, execution, after, limit).await;
    Ok(Json(found.map_err(problem)?))
}
