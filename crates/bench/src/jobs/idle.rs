//! What held reads and held claims cost the database while nothing happens.

use tokio::task::JoinSet;

use super::args::JobsArgs;
use super::held::{HeldReads, ReadKeys};
use super::job::{Job, claim};
use super::provider::Provider;
use super::server::{HOLD, JobsServer};
use super::worker::Worker;
use crate::figure::{Figure, Unit};

const READS: usize = 1_000;
const CLAIMS: usize = 100;

/// Nothing where claims are not held.
pub(super) async fn measure(host: &JobsServer, args: &JobsArgs) -> anyhow::Result<Vec<Figure>> {
    if !host.holds_claims {
        return Ok(Vec::new());
    }
    let server = &host.server;
    let (reads, claims) = (READS.min(args.held), CLAIMS.min(args.held));
    let meter = server.meter().await?;
    let provider = Provider::register(server, "idle").await?;
    let mut workers = Vec::new();
    for _ in 0..claims {
        // Without heartbeats, whose statements would be counted.
        workers.push(Worker::register(server).await?);
    }
    Job::register(server, "idle", &workers).await?;
    let mut claiming = JoinSet::new();
    for worker in &workers {
        let request = worker.claim(server).held_for(HOLD);
        let (mut connection, failures) = (server.connection(), server.failures.clone());
        claiming.spawn(async move {
            if let Err(error) = claim(&mut connection, request).await {
                failures.add_error("held claim", &error);
            }
        });
    }
    let held = HeldReads::open(server, &provider, ReadKeys::Distinct, reads);
    held.until_taken_in(server, &meter, reads + claims).await?;
    let idle = meter.idle_usage(args.idle).await?;
    held.hang_up().await;
    claiming.shutdown().await;
    for worker in workers {
        worker.leave(server).await?;
    }
    provider.leave(server).await?;
    let name = format!("idle, {reads} held reads and {claims} held claims");
    let rate = idle.statements_per_second;
    Ok(vec![Figure::new(name, Unit::STATEMENTS_PER_SECOND, rate)])
}
