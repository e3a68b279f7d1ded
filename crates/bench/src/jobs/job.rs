//! A job that workers do, and its tasks.

use anyhow::Context;
use http::Method;
use serde::Deserialize;

use super::host::{API, ask};
use super::worker::Worker;
use crate::contestant::{Contestant, PATIENCE};
use crate::line::{Ask, Line};

/// One that every server allows.
const CATEGORY: &str = "modifiers";
const NAME: &str = "Bench";

pub(super) struct Job {
    submit: Ask,
}

#[derive(Debug, Deserialize)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) status: String,
}

#[derive(Deserialize)]
struct Claimed {
    task: Option<Task>,
}

impl Job {
    /// In a room of its own, of these workers.
    pub(super) async fn register(
        server: &Contestant,
        phase: &str,
        workers: &[Worker],
    ) -> anyhow::Result<Self> {
        let room = server.named(phase);
        let jobs = server.path(&format!("{API}/rooms/{room}/jobs"));
        let mut line = server.line();
        for worker in workers {
            let body = format!(
                r#"{{"category":"{CATEGORY}","name":"{NAME}","schema":{{}},"worker_id":"{}"}}"#,
                worker.id
            );
            ask(&mut line, Ask::new(Method::PUT, jobs.clone(), body))
                .await
                .context("registering a job")?;
        }
        let tasks = server.path(&format!(
            "{API}/rooms/{room}/tasks/{room}:{CATEGORY}:{NAME}"
        ));
        let submit = Ask::new(Method::POST, tasks, r#"{"payload":{"angle":90.0}}"#);
        Ok(Self { submit })
    }

    pub(super) async fn submit(&self, line: &mut Line) -> anyhow::Result<Task> {
        let answer = line.send(self.submit.clone(), PATIENCE).await?;
        answer.read().context("submitting")
    }
}

/// What a claim brought.
pub(super) async fn claim(line: &mut Line, claim: Ask) -> anyhow::Result<Option<Task>> {
    let within = super::host::HOLD + PATIENCE;
    let answer = line.send(claim, within).await?;
    let claimed: Claimed = answer.read().context("claiming")?;
    Ok(claimed.task)
}

pub(super) async fn change(
    server: &Contestant,
    line: &mut Line,
    task: &Task,
    status: &str,
) -> anyhow::Result<()> {
    let body = format!(r#"{{"status":"{status}"}}"#);
    let answer = line
        .send(Ask::new(Method::PATCH, path(server, task), body), PATIENCE)
        .await?;
    let changed: Task = answer.read().context("changing a task")?;
    anyhow::ensure!(changed.status == status, "{}", answer.shown());
    Ok(())
}

pub(super) fn path(server: &Contestant, task: &Task) -> http::Uri {
    server.path(&format!("{API}/tasks/{}", task.id))
}
