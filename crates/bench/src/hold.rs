//! `bench hold`: what it costs to hold many pops, and how fast they are answered.

mod args;
mod held;
mod link;
mod report;
mod waiters;
mod wakes;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use tokio::time::Instant;
use wakeline_client::Client;

pub use args::HoldArgs;
use args::Topics;
use link::{Links, Node};
use report::{Idle, Memory, Report};
use waiters::Waiters;
use wakes::Pusher;

use crate::failures::Failures;
use crate::meter::{Database, Meter, Reading};

/// Prints its report to standard output. Fails after that when requests failed: a missed target
/// is a finding, a failed request spoils the numbers.
pub(crate) async fn run(args: HoldArgs) -> anyhow::Result<()> {
    let report = measure(&args).await?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    if let Some(trouble) = report.trouble() {
        bail!(trouble);
    }
    Ok(())
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
        nodes.push(Node::reach(url, args.token.as_deref()).await?);
    }
    let database = match &args.postgres {
        Some(url) => Some(Database::connect(url).await?),
        None => None,
    };
    let meter = Meter::new(clients.clone(), args.pid.clone(), database);
    let queues = Queues::new(args.waiters, args.topics);
    let failures = Arc::new(Failures::default());

    let held_before = held::count_at_rest(&clients).await;
    let before = meter.read().await?;

    let start = Instant::now();
    let links = match args.http {
        2 => Links::http2(nodes, args.connections),
        _ => Links::http1(nodes),
    };
    let names = (0..args.waiters).map(|waiter| queues.name(waiter));
    let mut waiters = Waiters::start(
        links,
        names,
        args.timeout,
        !args.lease,
        Arc::clone(&failures),
    );
    let held = held::until_all(&waiters, args.waiters, &clients, held_before, &failures).await?;
    let open_time = start.elapsed();
    if held.is_none() {
        eprintln!("the server does not say how many it holds: letting it settle");
        tokio::time::sleep(args.settle).await;
    }

    let (idle, after) = watch_idle(args, &meter).await?;

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
        Some(before) => held::left_behind(&clients, before).await,
        None => None,
    };

    let memory = Memory::between(before.memory_bytes, after.memory_bytes, args.waiters);
    let mut report = Report::new(args, open_time, held, memory, idle);
    if args.wakes > 0 {
        report.add_wakes(wakes);
    }
    report.add_wake_all(wake_all);
    report.early_answers = early;
    report.left_behind = left_behind;
    report.failures = failures.seen();
    report.judge(args);
    Ok(report)
}

async fn watch_idle(args: &HoldArgs, meter: &Meter) -> anyhow::Result<(Idle, Reading)> {
    if let Some(time) = meter.settle_time() {
        eprintln!("waiting until PostgreSQL has all its counters");
        tokio::time::sleep(time).await;
    }
    eprintln!("watching the idle server for {:?}", args.idle);
    let from = meter.read().await?;
    let start = Instant::now();
    tokio::time::sleep(args.idle).await;
    let to = meter.read().await?;
    Ok((Idle::between(&from, &to, start.elapsed()), to))
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
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            run: format!("bench-{:x}-{}", now.as_millis(), std::process::id()),
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
