//! `bench hold`: what it costs to hold many pops, and how fast they are answered.

mod args;
mod connections;
mod held_count;
mod report;
mod waiters;
mod wakes;

use std::sync::Arc;

use tokio::time::Instant;
use wakeline_client::Client;

pub use args::HoldArgs;
use args::Topics;
use connections::{CONNECT_TIMEOUT, ConnectionPool};
use report::{IdleUsage, Memory, Report};
use waiters::Waiters;
use wakes::Pusher;

use crate::connection::ServerAddress;
use crate::failures::Failures;
use crate::meter::{DatabaseCounters, Meter};

use crate::server::run_name;

/// Fails after its report when requests failed: a missed target is a finding, a failed request spoils
/// the numbers.
pub(crate) async fn run(args: HoldArgs) -> anyhow::Result<()> {
    let report = measure(&args).await?;
    crate::report::print(&report, args.json, report.trouble())
}

async fn measure(args: &HoldArgs) -> anyhow::Result<Report> {
    args.check()?;
    let client = |url: &str| Client::new(url, args.token.clone());
    let clients: Vec<Client> = args
        .url
        .iter()
        .map(|url| client(url))
        .collect::<Result<_, _>>()?;
    let push_client = client(args.push_url.as_ref().unwrap_or(&args.url[0]))?;
    let mut nodes = Vec::new();
    for url in &args.url {
        let node = ServerAddress::resolve(url, args.token.as_deref()).await?;
        // Fails at once when no server listens there.
        node.connect(CONNECT_TIMEOUT).await?;
        nodes.push(node);
    }
    let database = DatabaseCounters::connect_to(args.postgres.as_deref()).await?;
    let meter = Meter::new(clients.clone(), args.pid.clone(), database);
    let queues = Queues::new(args.waiters, args.topics);
    let failures = Arc::new(Failures::default());

    let held_before = held_count::count_at_rest(&clients).await;
    let before = meter.read().await?;

    let start = Instant::now();
    let connections = match args.http {
        2 => ConnectionPool::http2(nodes, args.connections),
        _ => ConnectionPool::http1(nodes),
    };
    let names = (0..args.waiters).map(|waiter| queues.name(waiter));
    let mut waiters = Waiters::start(
        connections,
        names,
        args.timeout,
        !args.lease,
        Arc::clone(&failures),
    );
    let held =
        held_count::until_all(&waiters, args.waiters, &clients, held_before, &failures).await?;
    let open_time = start.elapsed();
    if held.is_none() {
        eprintln!("the server does not say how many it holds: letting it settle");
        tokio::time::sleep(args.settle).await;
    }

    eprintln!("watching the idle server for {:?}", args.idle);
    let (from, after, time) = meter.watch(args.idle).await?;
    let idle = IdleUsage::between(&from, &after, time);

    let pusher = Pusher {
        client: push_client,
        queues: &queues,
        failures: &failures,
    };
    pusher.warm_up().await;
    eprintln!("waking {} times, one by one", args.wakes);
    let wakes = pusher.wake_one_by_one(&mut waiters, args.wakes).await;
    let wake_all = if args.wake_all {
        eprintln!("waking all");
        Some(pusher.wake_all(&mut waiters, args.wakes as u64).await)
    } else {
        None
    };
    let early = waiters.early();
    waiters.stop().await;
    let left_behind = match held_before {
        Some(before) => held_count::left_behind(&clients, before).await,
        None => None,
    };

    let memory = Memory::between(before.memory_bytes, after.memory_bytes, args.waiters);
    let mut report = Report::new(args, open_time, held, memory, idle);
    if args.wakes > 0 {
        report.add_wakes(wakes);
    }
    report.wake_all = wake_all;
    report.early_answers = early;
    report.left_behind = left_behind;
    report.failures = failures.summary();
    report.judge(args);
    Ok(report)
}

/// The queues of one run: named after it, so that nothing is left in them from before.
#[derive(Debug)]
struct Queues {
    run: String,
    waiters: usize,
    topics: Topics,
}

impl Queues {
    fn new(waiters: usize, topics: Topics) -> Self {
        Self {
            run: run_name(),
            waiters,
            topics,
        }
    }

    fn name(&self, waiter: usize) -> String {
        match self.topics {
            Topics::One => self.run.clone(),
            Topics::Each => format!("{}-{waiter}", self.run),
        }
    }
}
