//! Tasks from their submission to their end: submitted, claimed, begun, completed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::bail;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::args::JobsArgs;
use super::host::HOLD;
use super::job::{Job, change, claim};
use super::worker::Worker;
use crate::contestant::{Contestant, PAUSE};
use crate::figure::{Figure, Unit};
use crate::line::{Ask, Line};

/// A first, short run tells how many fill the time.
const PILOT: usize = 64;
const MOST_TASKS: usize = 50_000;
const SUBMITTERS: usize = 4;
/// When a claim that is not held finds nothing.
const EMPTY: Duration = Duration::from_millis(10);
/// A run in which no task is completed for so long, submissions included, is given up.
const STALLED_AFTER: Duration = Duration::from_secs(60);

/// How a worker waits for the next task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claims {
    /// All tasks are there before the first claim, and workers ask until none is left.
    Asking,
    /// Claims are held, and tasks come while they are.
    Held,
}

pub(super) fn name(workers: usize, claims: Claims) -> String {
    let plural = if workers == 1 { "" } else { "s" };
    match claims {
        Claims::Asking => format!("tasks, {workers} worker{plural}"),
        Claims::Held => format!("tasks, {workers} worker{plural} with held claims"),
    }
}

pub(super) async fn measure(
    server: &Contestant,
    args: &JobsArgs,
    workers: usize,
    claims: Claims,
) -> anyhow::Result<Vec<Figure>> {
    let crew = Crew::gather(server, workers, claims).await?;
    let (sender, completed) = mpsc::channel(MOST_TASKS);
    // The same connections for both runs: a claim that is hung up on may still get a task.
    let done = tokio::select! {
        done = crew.pilot_and_run(args, completed) => done?,
        () = crew.work(sender) => bail!("no worker works"),
    };
    crew.leave().await?;

    let name = name(workers, claims);
    let rate = |name: &str, time: Duration| {
        let rate = done.tasks as f64 / time.as_secs_f64();
        Figure::new(name, Unit::TasksPerSecond, rate)
    };
    let mut figures = vec![rate(&name, done.time)];
    if claims == Claims::Asking {
        let rest = done.time - done.submit_time;
        figures.push(rate(&format!("  {name}, submitted"), done.submit_time));
        figures.push(rate(&format!("  {name}, done when all are there"), rest));
    }
    figures.extend(Figure::details(
        &format!("{name}, claim to completed"),
        done.cycles,
    ));
    Ok(figures)
}

/// Workers of one job.
struct Crew<'a> {
    server: &'a Contestant,
    job: Job,
    workers: Vec<Worker>,
    claims: Claims,
    may_claim: watch::Sender<bool>,
}

struct Done {
    tasks: usize,
    /// From the first submission to the last completion.
    time: Duration,
    submit_time: Duration,
    /// Each from its claim to its completion.
    cycles: Vec<Duration>,
}

impl Done {
    fn per_second(&self) -> f64 {
        self.tasks as f64 / self.time.as_secs_f64()
    }
}

impl<'a> Crew<'a> {
    async fn gather(server: &'a Contestant, count: usize, claims: Claims) -> anyhow::Result<Self> {
        let mut workers = Vec::new();
        for _ in 0..count {
            workers.push(Worker::register(server).await?.keep(server));
        }
        let phase = format!("tasks-{count}-{claims:?}");
        Ok(Self {
            job: Job::register(server, &phase, &workers).await?,
            server,
            workers,
            claims,
            may_claim: watch::Sender::new(false),
        })
    }

    /// A pilot to learn the rate, then as many tasks as take about as long as was asked for.
    async fn pilot_and_run(
        &self,
        args: &JobsArgs,
        mut completed: mpsc::Receiver<Duration>,
    ) -> anyhow::Result<Done> {
        let pilot = self.run(PILOT.min(args.tasks), &mut completed).await?;
        let time = args.seconds.as_secs_f64() * args.rounds as f64;
        let tasks = (pilot.per_second() * time) as usize;
        self.run(tasks.clamp(args.tasks, MOST_TASKS), &mut completed)
            .await
    }

    async fn run(
        &self,
        tasks: usize,
        completed: &mut mpsc::Receiver<Duration>,
    ) -> anyhow::Result<Done> {
        let start = Instant::now();
        self.may_claim.send_replace(self.claims == Claims::Held);
        let submitting = async {
            self.submit(tasks).await?;
            self.may_claim.send_replace(true);
            anyhow::Ok(start.elapsed())
        };
        let (submit_time, cycles) = tokio::try_join!(submitting, until_done(tasks, completed))?;
        Ok(Done {
            tasks,
            time: start.elapsed(),
            submit_time,
            cycles,
        })
    }

    async fn submit(&self, tasks: usize) -> anyhow::Result<()> {
        let next = AtomicUsize::new(0);
        let submitting = (0..SUBMITTERS).map(|_| async {
            let mut line = self.server.line();
            while next.fetch_add(1, Ordering::Relaxed) < tasks {
                self.job.submit(&mut line).await?;
            }
            anyhow::Ok(())
        });
        futures_util::future::try_join_all(submitting).await?;
        Ok(())
    }

    /// All workers at once, without an end.
    async fn work(&self, completed: mpsc::Sender<Duration>) {
        let working = self.workers.iter().map(|worker| {
            let mut ask = worker.claim(self.server);
            if self.claims == Claims::Held {
                ask = ask.with("prefer", &format!("wait={}", HOLD.as_secs()));
            }
            self.work_as(ask, completed.clone())
        });
        futures_util::future::join_all(working).await;
    }

    async fn work_as(&self, ask: Ask, completed: mpsc::Sender<Duration>) {
        let mut line = self.server.line();
        let mut may_claim = self.may_claim.subscribe();
        loop {
            // Fails only when the run is over.
            let _ = may_claim.wait_for(|may| *may).await;
            match self.cycle(&mut line, &ask).await {
                Ok(Some(time)) => drop(completed.send(time).await),
                Ok(None) if self.claims == Claims::Held => {}
                Ok(None) => tokio::time::sleep(EMPTY).await,
                Err(error) => {
                    self.server.failures.add("task", &format!("{error:#}"));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// How long a task took, if there was one; the wait for it is not counted.
    async fn cycle(&self, line: &mut Line, ask: &Ask) -> anyhow::Result<Option<Duration>> {
        let asked = Instant::now();
        let Some(task) = claim(line, ask.clone()).await? else {
            return Ok(None);
        };
        let began = match self.claims {
            Claims::Asking => asked,
            Claims::Held => Instant::now(),
        };
        change(self.server, line, &task, "running").await?;
        change(self.server, line, &task, "completed").await?;
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
