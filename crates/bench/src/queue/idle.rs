//! What 100 held pops on 100 queues cost the database while nothing happens.

use std::time::Duration;

use tokio::task::JoinSet;

use super::args::QueueArgs;
use super::bodies::{Bodies, Template, shape};
use super::push::Pusher;
use crate::contestant::{Contestant, PATIENCE, PAUSE};
use crate::figure::{Figure, Unit};

const WAITERS: usize = 100;
/// Longer than the time that is watched with what comes before it.
const HOLD: Duration = Duration::from_secs(120);
/// Until a server that does not say how many it holds has parked them all.
const SETTLE: Duration = Duration::from_secs(3);
pub(super) const NAME: &str = "idle, 100 waiters on 100 queues";

pub(super) async fn measure(
    contestant: &Contestant,
    args: &QueueArgs,
) -> anyhow::Result<Vec<Figure>> {
    let meter = contestant.meter().await?;
    let mut waiters = JoinSet::new();
    for waiter in 0..WAITERS {
        let queue = contestant.named(&format!("idle-{waiter}"));
        make(contestant, args, &queue).await?;
        let mut line = contestant.line();
        let failures = contestant.failures.clone();
        let pop = |wait: &str| format!("/api/v1/pop/queue/{queue}?batch=1&autoAck=true&{wait}");
        let empty = contestant.path(&pop("wait=false"));
        let held = contestant.path(&pop(&format!("wait=true&timeout={}", HOLD.as_millis())));
        waiters.spawn(async move {
            let mut path = &empty;
            loop {
                if let Err(error) = line.get(path, HOLD + PATIENCE).await {
                    failures.add("held pop", &error);
                    tokio::time::sleep(PAUSE).await;
                }
                path = &held;
            }
        });
    }
    tokio::time::sleep(SETTLE).await;
    let rate = meter.idle_statements(args.idle).await?;
    waiters.shutdown().await;
    let figure = rate.map(|rate| Figure::new(NAME, Unit::StatementsPerSecond, rate));
    Ok(figure.into_iter().collect())
}

/// A queue that has been used before, as a real one has.
async fn make(contestant: &Contestant, args: &QueueArgs, queue: &str) -> anyhow::Result<()> {
    let template = Template::new(&shape(args, queue), std::iter::once("p"));
    let bodies = Bodies::new([template].into(), 0);
    let stored = Pusher::new(contestant, bodies).push().await;
    anyhow::ensure!(stored == 1, "the queues cannot be made");
    Ok(())
}
