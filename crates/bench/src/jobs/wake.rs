//! A request waits for a task, the task's worker completes it, the request is answered.

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::Instant;

use super::args::JobsArgs;
use super::job::{Job, Task, change_status, claim, path};
use super::server::HOLD;
use super::worker::Worker;
use crate::connection::{Connection, Request};
use crate::figure::Figure;
use crate::load::random_pause;
use crate::server::{REQUEST_TIMEOUT, Server};

/// Milliseconds before each change, so that the request is parked.
const PAUSE: std::ops::Range<u64> = 20..120;

pub(super) async fn measure(server: &Server, args: &JobsArgs) -> anyhow::Result<Vec<Figure>> {
    let workers = [Worker::register(server).await?.with_heartbeat(server)];
    let wakes = TaskWakes {
        server,
        job: Job::register(server, "wake", &workers).await?,
        worker: &workers[0],
    };
    let (mut waiting, mut working) = (server.connection(), server.connection());
    let (mut from_sent, mut from_answered) = (Vec::new(), Vec::new());
    // The first wake opens the connections: it is not counted.
    for wake in 0..=args.wakes {
        match wakes.wake(&mut waiting, &mut working).await {
            Ok((after_sent, after_change)) if wake > 0 => {
                from_sent.push(after_sent);
                from_answered.push(after_change);
            }
            Ok(_) => {}
            Err(error) => server.failures.add_error("task wake", &error),
        }
    }
    for worker in workers {
        worker.leave(server).await?;
    }
    let mut figures = Figure::wakes("task wake", "change sent", from_sent);
    figures.extend(Figure::wakes("task wake", "change answered", from_answered));
    Ok(figures)
}

struct TaskWakes<'a> {
    server: &'a Server,
    job: Job,
    worker: &'a Worker,
}

impl TaskWakes<'_> {
    /// How long after the last change was sent, and after it was answered, the waiting request was
    /// answered.
    async fn wake(
        &self,
        waiting: &mut Connection,
        working: &mut Connection,
    ) -> anyhow::Result<(Duration, Duration)> {
        let submitted = self.job.submit(working).await?;
        let claimed = claim(working, self.worker.claim(self.server)).await?;
        let task = claimed.context("the task cannot be claimed")?;
        ensure!(task.id == submitted.id, "another task was claimed");
        change_status(self.server, working, &task, "running").await?;
        let request = Request::get(path(self.server, &task)).held_for(HOLD);
        let waiting = async {
            let response = waiting.send(request, HOLD + REQUEST_TIMEOUT).await?;
            let answered = Instant::now();
            let task: Task = response.json()?;
            let is_completed = task.status == "completed";
            ensure!(is_completed, "not woken: {}", response.describe());
            anyhow::Ok(answered)
        };
        let changing = async {
            random_pause(PAUSE).await;
            let sent = Instant::now();
            change_status(self.server, working, &task, "completed").await?;
            Ok((sent, Instant::now()))
        };
        let (woken, (sent, changed)) = tokio::try_join!(waiting, changing)?;
        Ok((woken - sent, woken.saturating_duration_since(changed)))
    }
}
