//! Tasks from their submission to their end: submitted, claimed, started, completed.

use std::time::Duration;

use anyhow::bail;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::args::JobsArgs;
use super::job::{Job, change_status, claim};
use super::server::{HOLD, JobsServer};
use super::worker::Worker;
use crate::connection::{Connection, Request};
use crate::figure::{Figure, Unit};
use crate::load;
use crate::server::{RETRY_PAUSE, Server};

/// A first, short run tells how many tasks fill the time.
const PILOT_TASKS: usize = 64;
const MAX_TASKS: usize = 50_000;
const SUBMITTERS: usize = 4;
/// After a claim that is not held and finds no task.
const EMPTY_CLAIM_PAUSE: Duration = Duration::from_millis(10);
/// A run in which no task is completed for so long is given up, submissions included.
const STALLED_AFTER: Duration = Duration::from_secs(60);

/// How a worker waits for the next task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimMode {
    /// All tasks are there before the first claim, and workers claim until none is left.
    Polling,
    /// Claims are held, and tasks come while they are.
    Held,
}

pub(super) fn name(workers: usize, mode: ClaimMode) -> String {
    let plural = if workers == 1 { "" } else { "s" };
    match mode {
        ClaimMode::Polling => format!("tasks, {workers} worker{plural}"),
        ClaimMode::Held => format!("tasks, {workers} worker{plural} with held claims"),
    }
}

/// Nothing where claims are to be held and the server does not hold them.
pub(super) async fn measure(
    host: &JobsServer,
    args: &JobsArgs,
    workers: usize,
    mode: ClaimMode,
) -> anyhow::Result<Vec<Figure>> {
    if mode == ClaimMode::Held && !host.holds_claims {
        return Ok(Vec::new());
    }
    let pool = WorkerPool::register(&host.server, workers, mode).await?;
    let (sender, completed) = mpsc::channel(MAX_TASKS);
    // Both runs share the connections: a claim whose client hangs up may still get a task.
    let done = tokio::select! {
        done = pool.pilot_and_run(args, completed) => done?,
        () = pool.work(sender) => bail!("no worker works"),
    };
    pool.leave().await?;

    let name = name(workers, mode);
    let rate = |name: &str, time: Duration| {
        let rate = done.tasks as f64 / time.as_secs_f64();
        Figure::new(name, Unit::TASKS_PER_SECOND, rate)
    };
    let mut figures = vec![rate(&name, done.time)];
    if mode == ClaimMode::Polling {
        let rest = done.time - done.submit_time;
        figures.push(rate(&format!("  {name}, submitted"), done.submit_time));
        figures.push(rate(&format!("  {name}, done when all are there"), rest));
    }
    let cycle = format!("{name}, claim to completed");
    figures.extend(Figure::details(&cycle, done.cycles));
    Ok(figures)
}

/// Workers of one job.
struct WorkerPool<'a> {
    server: &'a Server,
    job: Job,
    workers: Vec<Worker>,
    mode: ClaimMode,
    may_claim: watch::Sender<bool>,
}

struct TaskRun {
    tasks: usize,
    /// From the first submission to the last completion.
    time: Duration,
    submit_time: Duration,
    /// From the claim of each task to its completion.
    cycles: Vec<Duration>,
}

impl TaskRun {
    fn per_second(&self) -> f64 {
        self.tasks as f64 / self.time.as_secs_f64()
    }
}

impl<'a> WorkerPool<'a> {
    async fn register(server: &'a Server, count: usize, mode: ClaimMode) -> anyhow::Result<Self> {
        let mut workers = Vec::new();
        for _ in 0..count {
            workers.push(Worker::register(server).await?.with_heartbeat(server));
        }
        let phase = format!("tasks-{count}-{mode:?}");
        Ok(Self {
            job: Job::register(server, &phase, &workers).await?,
            server,
            workers,
            mode,
            may_claim: watch::Sender::new(false),
        })
    }

    /// Runs a few tasks to learn the rate, then as many as fill the time.
    async fn pilot_and_run(
        &self,
        args: &JobsArgs,
        mut completed: mpsc::Receiver<Duration>,
    ) -> anyhow::Result<TaskRun> {
        let pilot = self
            .run(PILOT_TASKS.min(args.tasks), &mut completed)
            .await?;
        let time = args.seconds.as_secs_f64() * args.rounds as f64;
        let tasks = (pilot.per_second() * time) as usize;
        self.run(tasks.clamp(args.tasks, MAX_TASKS), &mut completed)
            .await
    }

    async fn run(
        &self,
        tasks: usize,
        completed: &mut mpsc::Receiver<Duration>,
    ) -> anyhow::Result<TaskRun> {
        let start = Instant::now();
        self.may_claim.send_replace(self.mode == ClaimMode::Held);
        let submitting = async {
            self.submit(tasks).await?;
            self.may_claim.send_replace(true);
            anyhow::Ok(start.elapsed())
        };
        let (submit_time, cycles) = tokio::try_join!(submitting, until_done(tasks, completed))?;
        Ok(TaskRun {
            tasks,
            time: start.elapsed(),
            submit_time,
            cycles,
        })
    }

    async fn submit(&self, tasks: usize) -> anyhow::Result<()> {
        let submit = async |connection: &mut Connection, _| self.job.submit(connection).await;
        load::for_each(self.server, SUBMITTERS, tasks, submit).await?;
        Ok(())
    }

    /// Runs all workers at once, without an end.
    async fn work(&self, completed: mpsc::Sender<Duration>) {
        let working = self.workers.iter().map(|worker| {
            let mut request = worker.claim(self.server);
            if self.mode == ClaimMode::Held {
                request = request.held_for(HOLD);
            }
            self.work_as(request, completed.clone())
        });
        futures_util::future::join_all(working).await;
    }

    async fn work_as(&self, request: Request, completed: mpsc::Sender<Duration>) {
        let mut connection = self.server.connection();
        let mut may_claim = self.may_claim.subscribe();
        loop {
            // Fails only when the run is over.
            let _ = may_claim.wait_for(|may| *may).await;
            match self.cycle(&mut connection, &request).await {
                Ok(Some(time)) => drop(completed.send(time).await),
                Ok(None) if self.mode == ClaimMode::Held => {}
                Ok(None) => tokio::time::sleep(EMPTY_CLAIM_PAUSE).await,
                Err(error) => {
                    self.server.failures.add_error("task", &error);
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// How long a task took, if one was claimed; the wait for it is not counted.
    async fn cycle(
        &self,
        connection: &mut Connection,
        request: &Request,
    ) -> anyhow::Result<Option<Duration>> {
        let sent = Instant::now();
        let Some(task) = claim(connection, request.clone()).await? else {
            return Ok(None);
        };
        let began = match self.mode {
            ClaimMode::Polling => sent,
            ClaimMode::Held => Instant::now(),
        };
        change_status(self.server, connection, &task, "running").await?;
        change_status(self.server, connection, &task, "completed").await?;
        Ok(Some(began.elapsed()))
    }

    async fn leave(self) -> anyhow::Result<()> {
        for worker in self.workers {
            worker.leave(self.server).await?;
        }
        Ok(())
    }
}

async fn until_done(
    tasks: usize,
    completed: &mut mpsc::Receiver<Duration>,
) -> anyhow::Result<Vec<Duration>> {
    let mut cycles = Vec::with_capacity(tasks);
    while cycles.len() < tasks {
        let next = tokio::time::timeout(STALLED_AFTER, completed.recv()).await;
        let Ok(Some(cycle)) = next else {
            bail!("{} of {tasks} tasks were completed", cycles.len());
        };
        cycles.push(cycle);
    }
    Ok(cycles)
}
