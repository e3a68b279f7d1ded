//! `/v1/problems`: what the types of problems mean.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::fields::PathParam;
use crate::{
    error::Error,
    problem::{self, Kind},
};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProblemType {
    #[serde(rename = "type")]
    kind: String,
    status: u16,
    description: &'static str,
}

impl From<&Kind> for ProblemType {
    fn from(kind: &Kind) -> Self {
        Self {
            kind: format!("/v1/problems/{}", kind.name),
            status: kind.status.as_u16(),
            description: kind.about,
        }
    }
}

/// All kinds of problem that callers of jobs and providers may read.
#[utoipa::path(
    get, path = "/v1/problems", tag = "jobs",
    responses((status = 200, body = Vec<ProblemType>))
)]
pub(super) async fn list() -> Json<Vec<ProblemType>> {
    Json(problem::ALL.iter().map(|kind| (*kind).into()).collect())
}

/// One kind of problem.
#[utoipa::path(
    get, path = "/v1/problems/{problem}", tag = "jobs",
    params(("problem" = String, Path)),
    responses((status = 200, body = ProblemType), (status = 404, description = "No such kind"))
)]
pub(super) async fn one(PathParam(name): PathParam) -> Result<Json<ProblemType>, Error> {
    let kind = problem::ALL.iter().find(|kind| kind.name == name);
    kind.map(|kind| Json((*kind).into()))
        .ok_or(Error::Detail(http::StatusCode::NOT_FOUND, "Not Found"))
}
