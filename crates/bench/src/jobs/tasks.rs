//! Tasks from their submission to their end: submitted, claimed, begun, completed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use tokio::sync::mpsc;
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
/// Without a completed task, a run is over.
const STALLED_AFTER: Duration = Duration::from_secs(30);

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
    let pilot = crew.run(PILOT.min(args.tasks)).await?;
    let time = args.seconds.as_secs_f64() * args.rounds as f64;
    let tasks = (pilot.per_second() * time) as usize;
    let done = crew.run(tasks.clamp(args.tasks, MOST_TASKS)).await?;
    crew.leave().await?;

    let name = name(workers, claims);
    let rate = |what: &str, time: Duration| {
        let rate = done.tasks as f64 / time.as_secs_f64();
        Figure::new(format!("{name}{what}"), Unit::TasksPerSecond, rate)
    };
    let mut figures = vec![rate("", done.time)];
    if claims == Claims::Asking {
        let detail = |what: &str, time| {
            let mut figure = rate(what, time);
            figure.name.insert_str(0, "  ");
            figure
        };
        figures.push(detail(", submitted", done.submit_time));
        figures.push(detail(", done when all are there", done.time - done.submit_time));
    }
    let mut times = Figure::times(&format!("{name}, claim to completed"), done.cycles);
    if let Some(p50) = times.first_mut() {
        p50.name = format!("  {name}, claim to completed p50");
    }
    if let Some(p99) = times.last_mut() {
        p99.name = format!("  {name}, claim to completed p99");
    }
    figures.extend(times);
    Ok(figures)
}

/// Workers of one job.
struct Crew<'a> {
    server: &'a Contestant,
    job: Job,
    workers: Vec<Worker>,
    claims: Claims,
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
    async fn gather(
        server: &'a Contestant,
        count: usize,
        claims: Claims,
    ) -> anyhow::Result<Self> {
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
        })
    }

    async fn run(&self, tasks: usize) -> anyhow::Result<Done> {
        let start = Instant::now();
        let (sender, completed) = mpsc::channel(tasks);
        let working = self.work(sender);
        match self.claims {
            Claims::Asking => {
                self.submit(tasks).await?;
                let submit_time = start.elapsed();
                let cycles = self.until_done(tasks, completed, working).await?;
                Ok(Done {
                    tasks,
                    time: start.elapsed(),
                    submit_time,
                    cycles,
                })
            }
            Claims::Held => {
                let submitting = async {
                    self.submit(tasks).await?;
                    Ok(start.elapsed())
                };
                let doing = self.until_done(tasks, completed, working);
                let (submit_time, cycles) = tokio::try_join!(submitting, doing)?;
                Ok(Done {
                    tasks,
                    time: start.elapsed(),
                    submit_time,
                    cycles,
                })
            }
        }
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
        loop {
            match self.cycle(&mut line, &ask).await {
                // Fails only when the run is over.
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

    /// Drops the work when all is done.
    async fn until_done(
        &self,
        tasks: usize,
        mut completed: mpsc::Receiver<Duration>,
        working: impl Future<Output = ()>,
    ) -> anyhow::Result<Vec<Duration>> {
        let counting = async {
            let mut cycles = Vec::with_capacity(tasks);
            while cycles.len() < tasks {
                let next = tokio::time::timeout(STALLED_AFTER, completed.recv()).await;
                let Ok(Some(cycle)) = next else { break };
                cycles.push(cycle);
            }
            cycles
        };
        let cycles = tokio::select! {
            cycles = counting => cycles,
            () = working => Vec::new(),
        };
        let count = cycles.len();
        ensure!(count == tasks, "{count} of {tasks} tasks were completed");
        Ok(cycles)
    }

    async fn leave(self) -> anyhow::Result<()> {
        for worker in self.workers {
            worker.leave(self.server).await?;
        }
        Ok(())
    }
}
