//! A job that workers do, and its tasks.

use anyhow::Context;
use http::Method;
use serde::Deserialize;

use super::server::{API, HOLD};
use super::worker::Worker;
use crate::connection::{Connection, Request};
use crate::server::{REQUEST_TIMEOUT, Server};

/// A category that every server allows.
const CATEGORY: &str = "modifiers";
const NAME: &str = "Bench";

pub(super) struct Job {
    submission: Request,
}

#[derive(Debug, Deserialize)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) status: String,
}

#[derive(Deserialize)]
struct ClaimResponse {
    task: Option<Task>,
}

impl Job {
    /// In a room of its own, for these workers.
    pub(super) async fn register(
        server: &Server,
        phase: &str,
        workers: &[Worker],
    ) -> anyhow::Result<Self> {
        let room = server.unique_name(phase);
        let jobs = server.path(&format!("{API}/rooms/{room}/jobs"));
        let mut connection = server.connection();
        for worker in workers {
            let body = format!(
                r#"{{"category":"{CATEGORY}","name":"{NAME}","schema":{{}},"worker_id":"{}"}}"#,
                worker.id
            );
            let request = Request::new(Method::PUT, jobs.clone(), body);
            let registered = connection.send_ok(request, REQUEST_TIMEOUT).await;
            registered.context("registering a job")?;
        }
        let tasks = server.path(&format!(
            "{API}/rooms/{room}/tasks/{room}:{CATEGORY}:{NAME}"
        ));
        let submission = Request::new(Method::POST, tasks, r#"{"payload":{"angle":90.0}}"#);
        Ok(Self { submission })
    }

    pub(super) async fn submit(&self, connection: &mut Connection) -> anyhow::Result<Task> {
        let request = self.submission.clone();
        let response = connection.send(request, REQUEST_TIMEOUT).await?;
        response.json().context("submitting")
    }
}

/// The task that a claim got.
pub(super) async fn claim(
    connection: &mut Connection,
    claim: Request,
) -> anyhow::Result<Option<Task>> {
    let response = connection.send(claim, HOLD + REQUEST_TIMEOUT).await?;
    let claimed: ClaimResponse = response.json().context("claiming")?;
    Ok(claimed.task)
}

pub(super) async fn change_status(
    server: &Server,
    connection: &mut Connection,
    task: &Task,
    status: &str,
) -> anyhow::Result<()> {
    let body = format!(r#"{{"status":"{status}"}}"#);
    let request = Request::new(Method::PATCH, path(server, task), body);
    let response = connection.send(request, REQUEST_TIMEOUT).await?;
    let changed: Task = response.json().context("changing a task")?;
    anyhow::ensure!(changed.status == status, "{}", response.describe());
    Ok(())
}

pub(super) fn path(server: &Server, task: &Task) -> http::Uri {
    server.path(&format!("{API}/tasks/{}", task.id))
}
