//! Orchestrations per second, and what each costs the database.
//!
//! The parameters are those of duroxide's own stress test, and so is the way to wait: its client,
//! whose polling is part of the load.

use std::time::Instant;

use futures_util::future::join_all;

use super::args::DurableArgs;
use super::measured_provider::MeasuredProvider;
use super::workload::{FAN, Workload};
use crate::figure::{Figure, Unit};

#[derive(Clone, Copy)]
pub(super) struct ThroughputShape {
    pub(super) name: &'static str,
    pub(super) dispatchers: usize,
    activity_millis: u64,
}

pub(super) const STRESS: ThroughputShape = ThroughputShape {
    name: "stress",
    dispatchers: 2,
    activity_millis: 10,
};
pub(super) const FAN_OUT: ThroughputShape = ThroughputShape {
    name: "fan-out",
    dispatchers: 8,
    activity_millis: 0,
};

pub(super) async fn measure(
    provider: &MeasuredProvider,
    workload: &Workload,
    args: &DurableArgs,
    shape: ThroughputShape,
) -> anyhow::Result<Vec<Figure>> {
    // One orchestration each, so that connections are open and statements are prepared.
    run(provider, workload, args, shape, Pass::WarmUp).await;

    let (from, start) = (provider.usage().await?, Instant::now());
    let completed = run(provider, workload, args, shape, Pass::Timed(start)).await as f64;
    let (to, time) = (provider.usage().await?, start.elapsed());

    let (name, each) = (shape.name, completed.max(1.0));
    let rate = completed / time.as_secs_f64();
    let detail = |what: &str| format!("  {name}, {what}");
    let mut figures = vec![
        Figure::new(name, Unit::ORCHESTRATIONS_PER_SECOND, rate),
        Figure::new(detail("completed"), Unit::ORCHESTRATIONS, completed),
    ];
    if let (Some(from), Some(to)) = (from.statements, to.statements) {
        let name = format!("{name}, per orchestration");
        figures.push(Figure::new(name, Unit::STATEMENTS, (to - from) / each));
    }
    let bytes = (to.wal_bytes - from.wal_bytes) / each;
    let name = detail("write-ahead log per orchestration");
    figures.push(Figure::new(name, Unit::BYTES, bytes));
    Ok(figures)
}

#[derive(Clone, Copy)]
enum Pass {
    WarmUp,
    Timed(Instant),
}

/// Keeps `--in-flight` orchestrations in flight until the time is over and all have ended. Returns
/// how many were completed.
async fn run(
    provider: &MeasuredProvider,
    workload: &Workload,
    args: &DurableArgs,
    shape: ThroughputShape,
    pass: Pass,
) -> usize {
    let slots = (0..args.in_flight).map(|slot| async move {
        let mut completed = 0;
        for number in 0.. {
            let instance = match pass {
                Pass::WarmUp if number > 0 => break,
                Pass::WarmUp => format!("{}-warm-up-{slot}", shape.name),
                Pass::Timed(start) if start.elapsed() >= args.seconds => break,
                Pass::Timed(_) => format!("{}-{slot}-{number}", shape.name),
            };
            match one(workload, &instance, shape).await {
                Ok(()) => completed += 1,
                Err(error) => provider.failures.add_error(shape.name, &error),
            }
        }
        completed
    });
    join_all(slots).await.into_iter().sum()
}

async fn one(workload: &Workload, instance: &str, shape: ThroughputShape) -> anyhow::Result<()> {
    workload
        .begin(instance, FAN, shape.activity_millis.to_string())
        .await?;
    workload.wait(instance).await
}
