//! Tasks: `/v1/joblib/rooms/{room}/tasks` and `/v1/joblib/tasks`

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{Delivery, LimitedBody, Prefer, UnsentAnswers};

use super::{
    PREFERENCE_APPLIED,
    fields::{self, JsonObject, ListQuery, PathParam, PathParams, id, request_body},
    shapes::{PageResponse, TaskResponse},
};
use crate::{
    caller::{Caller, ListCaller},
    error::Error,
    service::{Claim, Jobs},
    task::Status,
};

request_body! {
    pub(super) struct TaskSubmitRequest {
        /// Read as it was sent: see [`payload`].
        #[schema(value_type = Option<Object>)]
        #[allow(dead_code, reason = "only checked")]
        payload: JsonObject,
    }
}

request_body! {
    pub(super) struct TaskClaimRequest {
        worker_id: Uuid,
    }
}

request_body! {
    pub(super) struct TaskUpdateRequest {
        #[schema(value_type = String, example = "completed")]
        status: Option<Status>,
        error: Option<String>,
        /// Refused (409) unless this worker has the task.
        worker_id: Option<Uuid>,
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskClaimResponse {
    task: Option<TaskResponse>,
}

/// A room's tasks, newest first.
#[utoipa::path(
    get, path = "/v1/joblib/rooms/{room_id}/tasks", tag = "jobs",
    params(
        ("room_id" = String, Path), ("status" = Option<String>, Query),
        ("limit" = Option<i64>, Query), ("offset" = Option<i64>, Query)
    ),
    responses((status = 200, body = PageResponse<TaskResponse>), (status = 400, description = "The room's name is not valid"))
)]
pub(super) async fn of_room(
    State(door): State<Arc<Jobs>>,
    ListCaller(_visitor): ListCaller,
    PathParam(room): PathParam,
    query: ListQuery,
) -> Result<Json<PageResponse<TaskResponse>>, Error> {
    let tasks = door.tasks(&room, None, query.status, query.page).await?;
    Ok(Json(PageResponse::new(tasks, query.page)))
}

/// Submits a task. It is on disk when this is answered.
#[utoipa::path(
    post, path = "/v1/joblib/rooms/{room_id}/tasks/{*job_name}", tag = "jobs",
    params(("room_id" = String, Path), ("job_name" = String, Path)),
    request_body(content = TaskSubmitRequest),
    responses(
        (status = 202, body = TaskResponse),
        (status = 404, description = "No such job"),
        (status = 409, description = "The job has no workers (`jobs.require_workers`)"),
        (status = 422, description = "The payload is not an object"),
        (status = 503, description = "A job of @internal that this server does not run"),
    )
)]
pub(super) async fn submit(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    PathParams(room, name): PathParams,
    LimitedBody(body): LimitedBody,
) -> Result<Response, Error> {
    let _: TaskSubmitRequest = fields::secret_body(&body)?;
    let task = door.submit(caller, &room, &name, payload(&body)).await?;
    let place = format!("/v1/joblib/tasks/{}", task.id);
    let mut response = (StatusCode::ACCEPTED, Json(TaskResponse::from(task))).into_response();
    let headers = response.headers_mut();
    if let Ok(place) = HeaderValue::from_str(&place) {
        headers.insert(header::LOCATION, place);
    }
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    Ok(response)
}

/// As it was sent: a worker may care for the order of its keys. Of two the last counts, as it does
/// where the fields are read.
fn payload(body: &[u8]) -> String {
    type RawFields<'a> = HashMap<String, &'a serde_json::value::RawValue>;
    let given = serde_json::from_slice::<RawFields<'_>>(body).unwrap_or_default();
    let payload = given.get("payload").map(|payload| payload.get());
    payload
        .filter(|text| *text != "null")
        .unwrap_or("{}")
        .to_owned()
}

/// The next task for a worker. With `Prefer: wait=N` it is held until there is one.
#[utoipa::path(
    post, path = "/v1/joblib/tasks/claim", tag = "jobs",
    params(("Prefer" = Option<String>, Header, description = "wait=N")),
    request_body = TaskClaimRequest,
    responses(
        (status = 200, description = "`task` is null when there is none", body = TaskClaimResponse),
        (status = 403, description = "The worker belongs to another user"),
        (status = 404, description = "No such worker"),
    )
)]
pub(super) async fn claim(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    prefer: Prefer,
    unsent: UnsentAnswers,
    LimitedBody(body): LimitedBody,
) -> Result<Response, Error> {
    let TaskClaimRequest { worker_id } = fields::body(&body)?;
    let time = prefer.wait.unwrap_or(Duration::ZERO);
    let time = time.min(door.settings().max_task_hold);
    let held = Box::pin(door.claim(caller, worker_id, time)).await?;
    let mut response = claimed(held.value, unsent);
    if !time.is_zero() {
        held.timing.write(response.headers_mut());
        applied(response.headers_mut(), prefer, time);
    }
    Ok(response)
}

/// The connection holds the claim until its socket has accepted the answer.
fn claimed(claim: Option<Claim>, unsent: UnsentAnswers) -> Response {
    let Some(Claim { task, guard }) = claim else {
        return Json(TaskClaimResponse { task: None }).into_response();
    };
    let answer = TaskClaimResponse {
        task: Some(TaskResponse::from(task)),
    };
    let text = serde_json::to_vec(&answer).expect("a task is plain data");
    let mut response = Response::new(Delivery::body(text.into(), guard, unsent));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

pub(super) fn applied(headers: &mut HeaderMap, prefer: Prefer, time: Duration) {
    if let Some(applied) = prefer.applied(time) {
        headers.insert(PREFERENCE_APPLIED, applied);
    }
}

/// A task. With `Prefer: wait=N` it is held until the task has ended.
#[utoipa::path(
    get, path = "/v1/joblib/tasks/{task_id}", tag = "jobs",
    params(("task_id" = Uuid, Path), ("Prefer" = Option<String>, Header, description = "wait=N")),
    responses((status = 200, body = TaskResponse), (status = 404, description = "No such task"))
)]
pub(super) async fn one(
    State(door): State<Arc<Jobs>>,
    ListCaller(_visitor): ListCaller,
    PathParam(task): PathParam,
    prefer: Prefer,
) -> Result<Response, Error> {
    let task = id("task_id", &task)?;
    let time = prefer.wait.unwrap_or(Duration::ZERO);
    let time = time.min(door.settings().max_task_hold);
    let (task, timing) = Box::pin(door.task(task, time)).await?;
    let mut response = Json(TaskResponse::from(task)).into_response();
    if let Some(timing) = timing {
        timing.write(response.headers_mut());
        applied(response.headers_mut(), prefer, time);
    }
    Ok(response)
}

/// Changes the status of a task: the owner of its worker may, or a superuser; the user who has
/// submitted it may cancel it while it is pending.
#[utoipa::path(
    patch, path = "/v1/joblib/tasks/{task_id}", tag = "jobs",
    params(("task_id" = Uuid, Path)),
    request_body = TaskUpdateRequest,
    responses(
        (status = 200, body = TaskResponse),
        (status = 403, description = "The caller may not change this task"),
        (status = 404, description = "No such task"),
        (status = 409, description = "The status does not allow it, or `worker_id` does not have the task"),
        (status = 422, description = "The status is not valid"),
    )
)]
pub(super) async fn update(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    PathParam(task): PathParam,
    LimitedBody(body): LimitedBody,
) -> Result<Json<TaskResponse>, Error> {
    let task = id("task_id", &task)?;
    let body: TaskUpdateRequest = fields::secret_body(&body)?;
    let status = body.status.expect("a body without a status was refused");
    let task = door.update(caller, task, status, body.error, body.worker_id);
    let task = task.await?;
    Ok(Json(task.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_stored_unchanged() {
        for (body, kept) in [
            (r#"{"payload": {"b": 1,"a":2} }"#, r#"{"b": 1,"a":2}"#),
            (
                r#"{"payload":{"a":1},"other":[],"payload":{"a":2}}"#,
                r#"{"a":2}"#,
            ),
            (r#"{"payload":{"a":1},"payload":null}"#, "{}"),
            (r#"{"payload":null}"#, "{}"),
            ("{}", "{}"),
        ] {
            assert_eq!(payload(body.as_bytes()), kept, "{body}");
        }
    }
}
