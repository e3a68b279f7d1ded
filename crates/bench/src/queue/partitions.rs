//! A queue of very many partitions: filling it, draining it, and finding the one ready partition.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::args::QueueArgs;
use super::drain::{Drain, figures};
use super::push::{FILL_BATCH, PUSH, check_queued, fill_with};
use super::push_bodies::{PushBodies, PushTemplate};
use super::responses::{ack_of, check_acknowledged};
use crate::figure::{Figure, Unit};
use crate::load::join_all;
use crate::percentiles::Percentiles;
use crate::server::{REQUEST_TIMEOUT, Server};
use crate::units::show_count;

const DRAIN_BATCH: usize = 10;
/// The messages that the measured drain has left are consumed within this time, unmeasured.
const EMPTY_WITHIN: Duration = Duration::from_secs(60);

pub(super) async fn measure(server: &Server, args: &QueueArgs) -> anyhow::Result<Vec<Figure>> {
    let count = args.many_partitions;
    let label = format!("{} partitions", show_count(count));
    let queue = server.unique_name("partitions");
    let names: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
    let templates = names
        .chunks(FILL_BATCH)
        .map(|names| PushTemplate::new(args, &queue, names.iter().map(String::as_str)));
    let templates: Arc<[PushTemplate]> = templates.collect();
    let pushes = templates.len();

    let start = Instant::now();
    fill_with(server, templates, pushes).await?;
    let rate = count as f64 / start.elapsed().as_secs_f64();
    let name = format!("{label}, made by pushes of {FILL_BATCH}");
    let mut found = vec![Figure::new(name, Unit::MESSAGES_PER_SECOND, rate)];

    let drain = Drain {
        messages: count,
        limit: args.seconds,
        ..Drain::new(queue.clone(), args, DRAIN_BATCH)
    };
    let drained = drain.run(server).await?;
    let left = !drained.is_empty;
    let name = format!("{label}, one message each, drain");
    found.extend(figures(&name, drained));
    if left {
        take_the_rest(server, args, &queue).await?;
    }
    let template = PushTemplate::new(args, &queue, [&*names[count / 2]]);
    if let Some(times) = find_one(server, &queue, template, args.wakes).await? {
        let name = |percentile| format!("{label}, one is ready, pop {percentile}");
        found.push(Figure::time(name("p50"), times.p50));
        found.push(Figure::time(name("p99"), times.p99));
    }
    Ok(found)
}

/// Pops until each connection has found nothing.
async fn take_the_rest(server: &Server, args: &QueueArgs, queue: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/pop/queue/{queue}?batch=1000&partitions=100&autoAck=true");
    let deadline = Instant::now() + EMPTY_WITHIN;
    let mut tasks = JoinSet::new();
    for _ in 0..args.connections {
        let (mut connection, path) = (server.connection(), server.path(&path));
        tasks.spawn(async move {
            loop {
                let response = connection.get(&path, REQUEST_TIMEOUT).await?;
                if ack_of(&response, DRAIN_BATCH, None)?.is_none() {
                    return Ok(());
                }
                ensure!(
                    Instant::now() < deadline,
                    "not drained within {EMPTY_WITHIN:?}"
                );
            }
        });
    }
    join_all(tasks).await
}

/// Pushes one message to one of many idle partitions, then times the pop that has to find it.
async fn find_one(
    server: &Server,
    queue: &str,
    template: PushTemplate,
    finds: usize,
) -> anyhow::Result<Option<Percentiles>> {
    let mut bodies = PushBodies::new([template].into(), 0);
    let mut connection = server.connection();
    let push = server.path(PUSH);
    let pop = server.path(&format!("/api/v1/pop/queue/{queue}?batch=1&wait=false"));
    let ack = server.path("/api/v1/ack");
    let mut times = Vec::new();
    for _ in 0..finds {
        let body = bodies.next().1;
        check_queued(&connection.post(&push, body, REQUEST_TIMEOUT).await?, 1)?;
        let sent = Instant::now();
        let response = connection.get(&pop, REQUEST_TIMEOUT).await?;
        let time = sent.elapsed();
        let Some((body, _)) = ack_of(&response, 1, None)? else {
            let nothing = "a pop right after the push's answer found nothing";
            server.failures.add("pop", &nothing);
            continue;
        };
        times.push(time);
        check_acknowledged(&connection.post(&ack, body, REQUEST_TIMEOUT).await?)?;
    }
    Ok(Percentiles::of(times))
}
