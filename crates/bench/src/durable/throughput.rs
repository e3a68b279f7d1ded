//! Orchestrations per second, and what each costs the database.
//!
//! The parameters are those of duroxide's own stress test, and so is the way to wait: its client,
//! whose polling is part of the load.

use std::time::Instant;

use futures_util::future::join_all;

use super::args::DurableArgs;
use super::contestant::Contestant;
use super::work::{FAN, Work};
use crate::figure::{Figure, Unit};

#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) dispatchers: usize,
    activity_millis: u64,
}

pub(super) const STRESS: Shape = Shape {
    name: "stress",
    dispatchers: 2,
    activity_millis: 10,
};
pub(super) const FAN_OUT: Shape = Shape {
    name: "fan-out",
    dispatchers: 8,
    activity_millis: 0,
};

pub(super) async fn measure(
    contestant: &Contestant,
    work: &Work,
    args: &DurableArgs,
    shape: Shape,
) -> anyhow::Result<Vec<Figure>> {
    // One each, so that connections are open and statements are known.
    run(contestant, work, args, shape, Pass::WarmUp).await;

    let (from, start) = (contestant.cost().await?, Instant::now());
    let completed = run(contestant, work, args, shape, Pass::Timed(start)).await;
    let (to, time) = (contestant.cost().await?, start.elapsed());

    let each = completed.max(1) as f64;
    let name = shape.name;
    let mut figures = vec![
        Figure::new(
            name,
            Unit::OrchestrationsPerSecond,
            completed as f64 / time.as_secs_f64(),
        ),
        Figure::new(
            format!("  {name}, completed"),
            Unit::Orchestrations,
            completed as f64,
        ),
    ];
    if let (Some(from), Some(to)) = (from.statements, to.statements) {
        figures.push(Figure::new(
            format!("{name}, per orchestration"),
            Unit::Statements,
            (to - from) / each,
        ));
    }
    figures.push(Figure::new(
        format!("  {name}, write-ahead log per orchestration"),
        Unit::Bytes,
        (to.wal_bytes - from.wal_bytes) / each,
    ));
    Ok(figures)
}

#[derive(Clone, Copy)]
enum Pass {
    WarmUp,
    Timed(Instant),
}

/// Keeps as many in flight as it was asked for, until the time is over and all have ended; how
/// many were completed.
async fn run(
    contestant: &Contestant,
    work: &Work,
    args: &DurableArgs,
    shape: Shape,
    pass: Pass,
) -> usize {
    let lanes = (0..args.in_flight).map(|lane| async move {
        let mut completed = 0;
        for number in 0.. {
            let instance = match pass {
                Pass::WarmUp if number > 0 => break,
                Pass::WarmUp => format!("{}-warm-up-{lane}", shape.name),
                Pass::Timed(start) if start.elapsed() >= args.seconds => break,
                Pass::Timed(_) => format!("{}-{lane}-{number}", shape.name),
            };
            match one(work, &instance, shape).await {
                Ok(()) => completed += 1,
                Err(error) => contestant.failures.add(shape.name, &format!("{error:#}")),
            }
        }
        completed
    });
    join_all(lanes).await.into_iter().sum()
}

async fn one(work: &Work, instance: &str, shape: Shape) -> anyhow::Result<()> {
    work.begin(instance, FAN, shape.activity_millis.to_string())
        .await?;
    work.wait(instance).await
}
