//! A task is waited for, its worker completes it, who waits is answered.

use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::time::Instant;

use super::args::JobsArgs;
use super::host::HOLD;
use super::job::{Job, Task, change, claim, path};
use super::worker::Worker;
use crate::contestant::{Contestant, PATIENCE};
use crate::figure::Figure;
use crate::line::{Ask, Line};
use crate::percentiles::Percentiles;

/// Before each change, so that the wait is parked. Drawn at random, so that the changes do not
/// fall into step with a server that polls.
const REST: std::ops::Range<f64> = 0.02..0.12;

pub(super) async fn measure(server: &Contestant, args: &JobsArgs) -> anyhow::Result<Vec<Figure>> {
    let workers = [Worker::register(server).await?.keep(server)];
    let wakes = Wakes {
        server,
        job: Job::register(server, "wake", &workers).await?,
        worker: &workers[0],
    };
    let (mut waits, mut works) = (server.line(), server.line());
    let (mut from_sent, mut from_answered) = (Vec::new(), Vec::new());
    // The first one opens the connections: it is not counted.
    for wake in 0..=args.wakes {
        match wakes.wake(&mut waits, &mut works).await {
            Ok((sent, answered)) if wake > 0 => {
                from_sent.push(sent);
                from_answered.push(answered);
            }
            Ok(_) => {}
            Err(error) => server.failures.add("task wake", &format!("{error:#}")),
        }
    }
    for worker in workers {
        worker.leave(server).await?;
    }
    let mut figures = Vec::new();
    for (from, times) in [("sent", from_sent), ("answered", from_answered)] {
        let times = Percentiles::of(times).context("no wait was woken")?;
        for (name, time) in [("p50", times.p50), ("p99", times.p99), ("max", times.max)] {
            figures.push(Figure::time(
                format!("task wake {name}, from change {from}"),
                time,
            ));
        }
    }
    Ok(figures)
}

struct Wakes<'a> {
    server: &'a Contestant,
    job: Job,
    worker: &'a Worker,
}

impl Wakes<'_> {
    /// From the last change sent, and from its answer, to the answer of the wait.
    async fn wake(
        &self,
        waits: &mut Line,
        works: &mut Line,
    ) -> anyhow::Result<(Duration, Duration)> {
        let submitted = self.job.submit(works).await?;
        let claimed = claim(works, self.worker.claim(self.server)).await?;
        let task = claimed.context("the task cannot be claimed")?;
        ensure!(task.id == submitted.id, "another task was claimed");
        change(self.server, works, &task, "running").await?;
        let ask =
            Ask::get(path(self.server, &task)).with("prefer", &format!("wait={}", HOLD.as_secs()));
        let waiting = async {
            let answer = waits.send(ask, HOLD + PATIENCE).await?;
            let at = Instant::now();
            let task: Task = answer.read()?;
            ensure!(task.status == "completed", "not woken: {}", answer.shown());
            anyhow::Ok(at)
        };
        let changing = async {
            tokio::time::sleep(Duration::from_secs_f64(rand::random_range(REST))).await;
            let sent = Instant::now();
            change(self.server, works, &task, "completed").await?;
            Ok((sent, Instant::now()))
        };
        let (woken, (sent, changed)) = tokio::try_join!(waiting, changing)?;
        Ok((woken - sent, woken.saturating_duration_since(changed)))
    }
}
