//! `bench verify`: producers and consumers at work while nodes are killed, the database restarts,
//! connections are cut and leases run out; then a proof from the history of their calls that the
//! promises were kept.
//!
//! The load writes a [`history::History`], the checker reads it, and neither knows the other.

mod args;
mod check;
mod consumer;
mod faults;
mod history;
mod producer;
mod report;
mod run;
mod schedule;

use std::sync::{Arc, Mutex};

use anyhow::Context;
use bytes::Bytes;
use serde_json::json;
use tokio::task::JoinSet;

pub use args::VerifyArgs;
use consumer::Consumer;
use faults::Cluster;
use producer::Producer;
use report::Report;
use run::{CallerRecord, LEASE, OfferedRoutes, QUEUES, Run, blank_history, groups};

use crate::connection::{Connection, ServerAddress};
use crate::server::REQUEST_TIMEOUT;

/// Each kind pushes half of the messages.
const LARGE_PRODUCERS: usize = 2;
const SMALL_PRODUCERS: usize = 6;
/// For each queue and group with leases.
const CONSUMERS: usize = 3;
const DRAINERS: usize = 2;
/// In milliseconds; shorter than by default, so that a run sees many retries.
const RETRY_DELAY: u64 = 200;

/// Fails after its report when a promise was broken, and when too little happened for the run to prove
/// anything.
pub(crate) async fn run(args: VerifyArgs) -> anyhow::Result<()> {
    args.check()?;
    let seed = args.seed.unwrap_or_else(rand::random);
    // Printed first, so that a run that dies on the way can be repeated.
    eprintln!("seed {seed}");
    let report = verify(&args, seed).await?;
    crate::report::print(&report, args.json, report.trouble())
}

async fn verify(args: &VerifyArgs, seed: u64) -> anyhow::Result<Report> {
    let own = args.clone();
    let cluster = tokio::task::spawn_blocking(move || Cluster::prepare(&own)).await??;
    let mut servers = Vec::new();
    for url in cluster.urls() {
        servers.push(ServerAddress::resolve(&url, None).await?);
    }
    let routes = routes(&servers[0]).await?;
    let run = Run::new(seed, servers, routes);
    let plan = schedule::plan(seed, args.time(), args.store, args.nodes);
    let planned: Vec<&str> = plan.iter().map(|one| faults::name(one.fault)).collect();
    let cluster = Arc::new(Mutex::new(cluster));

    let load = start_load(args, &run);
    let injecting = faults::run(Arc::clone(&run), Arc::clone(&cluster), plan);
    let (_, injected) = tokio::join!(tokio::time::sleep(args.time()), injecting);
    run.stop();
    let mut record = CallerRecord::default();
    for part in load.join_all().await {
        record.append(part);
    }
    record.events.0.extend(injected?.0);
    eprintln!("draining");
    for part in drain(&run).join_all().await {
        record.append(part);
    }

    let mut history = blank_history();
    history.append(record.history);
    let mut report = Report::new(args, seed, routes, &history, &record.events, &planned);
    let violations = tokio::task::spawn_blocking(move || check::check(&history)).await?;
    report.judge(violations, run.unexpected.summary());
    drop(cluster);
    Ok(report)
}

fn start_load(args: &VerifyArgs, run: &Arc<Run>) -> JoinSet<CallerRecord> {
    let mut load = JoinSet::new();
    let half = f64::from(args.rate) / 2.0;
    for producer in 0..LARGE_PRODUCERS + SMALL_PRODUCERS {
        let is_large = producer < LARGE_PRODUCERS;
        let among = if is_large {
            LARGE_PRODUCERS
        } else {
            SMALL_PRODUCERS
        };
        load.spawn(Producer::new(run, producer, is_large, half / among as f64).run());
    }
    for (group, kind) in groups().iter().enumerate() {
        for queue in 0..QUEUES.len() {
            let consumers = if kind.auto_ack { 1 } else { CONSUMERS };
            for consumer in 0..consumers {
                let name = format!("consumer-{consumer}");
                load.spawn(Consumer::new(run, group, queue, &name).run(consumer));
            }
            // A consumer that hangs up on an answer without a lease would lose its messages.
            if !kind.auto_ack {
                load.spawn(Consumer::new(run, group, queue, "leaver").leave());
            }
        }
    }
    load
}

fn drain(run: &Arc<Run>) -> JoinSet<CallerRecord> {
    let mut drainers = JoinSet::new();
    for (group, _) in groups()
        .iter()
        .enumerate()
        .filter(|(_, group)| !group.auto_ack)
    {
        for queue in 0..QUEUES.len() {
            for drainer in 0..DRAINERS {
                let name = format!("drainer-{drainer}");
                drainers.spawn(Consumer::new(run, group, queue, &name).drain());
            }
        }
    }
    drainers
}

/// Which routes the server offers. Configures the lease of its queues, if it can be configured.
async fn routes(server: &Arc<ServerAddress>) -> anyhow::Result<OfferedRoutes> {
    let mut connection = Connection::to(server);
    let mut offers = async |path: &str, body: serde_json::Value| {
        let body = Bytes::from(body.to_string());
        let response = connection
            .post(&server.path(path), body, REQUEST_TIMEOUT)
            .await;
        let response = response.with_context(|| format!("asking for {path}"))?;
        anyhow::Ok(!matches!(response.status.as_u16(), 404 | 405))
    };
    for queue in QUEUES {
        let options = json!({ "leaseTime": LEASE.as_secs(), "retryDelay": RETRY_DELAY });
        let body = json!({ "queue": queue, "options": options });
        offers("/api/v1/configure", body).await?;
    }
    Ok(OfferedRoutes {
        ack_batch: offers("/api/v1/ack/batch", json!({ "acknowledgments": [] })).await?,
        transaction: offers("/api/v1/transaction", json!({ "operations": [] })).await?,
    })
}
