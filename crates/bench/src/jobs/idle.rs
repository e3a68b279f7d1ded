//! What held reads and held claims cost the database while nothing happens.

use tokio::task::JoinSet;

use super::args::JobsArgs;
use super::held::{HeldReads, Keys, until_at_rest};
use super::host::HOLD;
use super::job::{Job, claim};
use super::provider::Provider;
use super::worker::Worker;
use crate::contestant::Contestant;
use crate::figure::{Figure, Unit};

const READS: usize = 1_000;
const CLAIMS: usize = 100;

pub(super) async fn measure(server: &Contestant, args: &JobsArgs) -> anyhow::Result<Vec<Figure>> {
    let (reads, claims) = (READS.min(args.held), CLAIMS.min(args.held));
    let meter = server.meter().await?;
    let provider = Provider::register(server, "idle").await?;
    let mut workers = Vec::new();
    for _ in 0..claims {
        // Without heartbeats, which would be counted.
        workers.push(Worker::register(server).await?);
    }
    Job::register(server, "idle", &workers).await?;
    let mut claiming = JoinSet::new();
    for worker in &workers {
        let ask = worker
            .claim(server)
            .with("prefer", &format!("wait={}", HOLD.as_secs()));
        let (mut line, failures) = (server.line(), server.failures.clone());
        claiming.spawn(async move {
            if let Err(error) = claim(&mut line, ask).await {
                failures.add("held claim", &format!("{error:#}"));
            }
        });
    }
    let held = HeldReads::open(server, &provider, Keys::Distinct, reads);
    until_at_rest(server, &meter, &held, reads + claims).await?;
    let rate = meter.idle_statements(args.idle).await?;
    held.leave().await;
    claiming.shutdown().await;
    for worker in workers {
        worker.leave(server).await?;
    }
    provider.leave(server).await?;
    let name = format!("idle, {reads} held reads and {claims} held claims");
    let figure = rate.map(|rate| Figure::new(name, Unit::StatementsPerSecond, rate));
    Ok(figure.into_iter().collect())
}
