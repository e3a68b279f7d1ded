//! A queue of very many partitions: filling it, draining it, and finding the one that is ready.

use std::time::Duration;

use anyhow::ensure;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answers::{ack_of, acknowledged, queued};
use super::args::QueueArgs;
use super::bodies::{Bodies, Template, shape};
use super::drain::{Drain, figures};
use super::push::{FILL_BATCH, fill_with};
use crate::contestant::{Contestant, PATIENCE};
use crate::figure::{Figure, Unit};
use crate::percentiles::Percentiles;
use crate::units::show_count;

const DRAIN_BATCH: usize = 10;
/// What the measured drain has left is taken away within this, unmeasured.
const REST_TIME: Duration = Duration::from_secs(60);

pub(super) async fn measure(
    contestant: &Contestant,
    args: &QueueArgs,
) -> anyhow::Result<Vec<Figure>> {
    let count = args.many_partitions;
    let label = format!("{} partitions", show_count(count));
    let queue = contestant.named("partitions");
    let shape = shape(args, &queue);
    let names: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
    let templates = names
        .chunks(FILL_BATCH)
        .map(|names| Template::new(&shape, names.iter().map(String::as_str)));
    let templates: std::sync::Arc<[Template]> = templates.collect();
    let pushes = templates.len();

    let start = Instant::now();
    fill_with(contestant, templates, pushes).await?;
    let rate = count as f64 / start.elapsed().as_secs_f64();
    let name = format!("{label}, made by pushes of {FILL_BATCH}");
    let mut found = vec![Figure::new(name, Unit::MessagesPerSecond, rate)];

    let drain = Drain {
        queue: queue.clone(),
        groups: Vec::new(),
        connections: args.connections,
        batch: DRAIN_BATCH,
        messages: count,
        limit: args.seconds,
    };
    let drained = drain.run(contestant).await?;
    let left = !drained.is_empty;
    found.extend(figures(
        &format!("{label}, one message each, drain"),
        drained,
    ));
    if left {
        take_the_rest(contestant, args, &queue).await?;
    }
    let template = Template::new(&shape, std::iter::once(&*names[count / 2]));
    if let Some(times) = find_one(contestant, &queue, template, args.wakes).await? {
        found.push(Figure::time(
            format!("{label}, one is ready, pop p50"),
            times.p50,
        ));
        found.push(Figure::time(
            format!("{label}, one is ready, pop p99"),
            times.p99,
        ));
    }
    Ok(found)
}

/// Until each connection has found nothing.
async fn take_the_rest(
    contestant: &Contestant,
    args: &QueueArgs,
    queue: &str,
) -> anyhow::Result<()> {
    let path = format!("/api/v1/pop/queue/{queue}?batch=1000&partitions=100&autoAck=true");
    let deadline = Instant::now() + REST_TIME;
    let mut tasks = JoinSet::new();
    for _ in 0..args.connections {
        let (mut line, path) = (contestant.line(), contestant.path(&path));
        tasks.spawn(async move {
            while ack_of(&line.get(&path, PATIENCE).await?, DRAIN_BATCH, None)?.is_some() {
                ensure!(
                    Instant::now() < deadline,
                    "not drained within {REST_TIME:?}"
                );
            }
            anyhow::Ok(())
        });
    }
    while let Some(taken) = tasks.join_next().await {
        taken??;
    }
    Ok(())
}

/// One message into one partition of the idle many, and a pop that has to find it.
async fn find_one(
    contestant: &Contestant,
    queue: &str,
    template: Template,
    finds: usize,
) -> anyhow::Result<Option<Percentiles>> {
    let mut bodies = Bodies::new([template].into(), 0);
    let mut line = contestant.line();
    let push = contestant.path("/api/v1/push");
    let pop = contestant.path(&format!("/api/v1/pop/queue/{queue}?batch=1&wait=false"));
    let ack = contestant.path("/api/v1/ack");
    let mut times = Vec::new();
    for _ in 0..finds {
        let answer = line.post(&push, bodies.next().1, PATIENCE).await?;
        ensure!(queued(&answer)? == 1, "not stored: {}", answer.shown());
        let asked = Instant::now();
        let answer = line.get(&pop, PATIENCE).await?;
        let time = asked.elapsed();
        let Some((body, _)) = ack_of(&answer, 1, None)? else {
            let nothing = "a pop right after the push's answer found nothing";
            contestant.failures.add("pop", &nothing);
            continue;
        };
        times.push(time);
        let answer = line.post(&ack, body, PATIENCE).await?;
        ensure!(acknowledged(&answer)? == 1, "ack: {}", answer.shown());
    }
    Ok(Percentiles::of(times))
}
