//! `bench hold`: what it costs to hold many pops, and how fast they are answered.

mod args;
mod connections;
mod figures;
mod held_count;
mod waiters;
mod wakes;

use std::sync::Arc;

use serde_json::json;
use tokio::time::Instant;
use wakeline_client::Client;

pub use args::HoldArgs;
use args::Topics;
use connections::{CONNECT_TIMEOUT, ConnectionPool};
use figures::HoldMeasurements;
use waiters::Waiters;
use wakes::Pusher;

use crate::connection::ServerAddress;
use crate::failures::Failures;
use crate::figure::Figure;
use crate::meter::{DatabaseCounters, Meter};
use crate::report::Settings;
use crate::server::run_name;
use crate::setup::Setup;
use crate::suite::{Benchmark, Contestant, Phases};
use crate::target::{Goal, Goals};
use crate::units::{millis, show_count};

/// As the report names it. Its URLs are in the head.
const SERVER: &str = "server";

/// The nodes that hold the pops, and the one that takes the pushes.
pub(crate) struct HoldingServer {
    nodes: Vec<Arc<ServerAddress>>,
    clients: Vec<Client>,
    push_client: Client,
    meter: Meter,
    failures: Arc<Failures>,
}

impl HoldingServer {
    async fn connect(args: &HoldArgs) -> anyhow::Result<Self> {
        let client = |url: &String| Client::new(url, args.token.clone());
        let clients: Vec<Client> = args.url.iter().map(client).collect::<Result<_, _>>()?;
        let mut nodes = Vec::new();
        for url in &args.url {
            let node = ServerAddress::resolve(url, args.token.as_deref()).await?;
            // Fails at once when no server listens there.
            node.connect(CONNECT_TIMEOUT).await?;
            nodes.push(node);
        }
        let database = DatabaseCounters::connect_to(args.postgres.as_deref()).await?;
        Ok(Self {
            nodes,
            push_client: client(args.push_url.as_ref().unwrap_or(&args.url[0]))?,
            meter: Meter::new(clients.clone(), args.pid.clone(), database),
            clients,
            failures: Arc::default(),
        })
    }
}

impl Contestant for HoldingServer {
    fn name(&self) -> &str {
        SERVER
    }

    fn failures(&self) -> &Failures {
        &self.failures
    }
}

impl Benchmark for HoldArgs {
    type Contestant = HoldingServer;
    type PhaseName = ();

    fn json(&self) -> bool {
        self.json
    }

    async fn prepare(&self) -> anyhow::Result<Setup<HoldingServer>> {
        self.check()?;
        let mut setup = Setup::new(false)?;
        setup.contestants.push(HoldingServer::connect(self).await?);
        Ok(setup)
    }

    fn phases(&self, phases: &mut Phases<'_, Self>) {
        phases.add((), "hold", |server, args| Box::pin(measure(server, args)));
    }

    fn settings(&self, _: &Setup<HoldingServer>) -> anyhow::Result<Settings> {
        let (topics, queues) = match self.topics {
            Topics::One => ("one", "on one queue"),
            Topics::Each => ("each", "on a queue each"),
        };
        let (connections, http) = match self.http {
            2 => (
                self.connections,
                format!("HTTP/2 over {} connections", self.connections),
            ),
            _ => (self.waiters, "HTTP/1.1, a connection each".to_owned()),
        };
        let ack = if self.lease { "leases" } else { "autoAck" };
        let mut text = format!(
            "{} pops {queues}, {http}, {ack}\nheld by {}",
            show_count(self.waiters),
            self.url.join(", ")
        );
        if let Some(url) = &self.push_url {
            text += &format!(", pushed to {url}");
        }
        let json = json!({
            "urls": self.url,
            "pushUrl": self.push_url,
            "waiters": self.waiters,
            "topics": topics,
            "http": self.http,
            "connections": connections,
            "lease": self.lease,
            "idleMs": millis(self.idle),
            "wakes": self.wakes,
        });
        Ok(Settings { text, json })
    }

    fn goals(&self) -> Goals {
        let goals = [
            (figures::WAKE_P99, self.target_p99.map(millis)),
            (figures::MEMORY, self.target_bytes),
            (figures::STATEMENTS, self.target_statements),
            (figures::CPU, self.target_cpu),
        ];
        let goal = |(name, most): (&str, Option<f64>)| Some((name.to_owned(), Goal::AtMost(most?)));
        Goals {
            reference: "",
            ours: &[SERVER],
            goals: goals.into_iter().filter_map(goal).collect(),
        }
    }
}

async fn measure(server: &HoldingServer, args: &HoldArgs) -> anyhow::Result<Vec<Figure>> {
    let (nodes, clients) = (server.nodes.clone(), &server.clients);
    let queues = Queues::new(args.waiters, args.topics);
    let held_before = held_count::count_at_rest(clients).await;
    let memory_before = server.meter.read().await?.memory_bytes;

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
        Arc::clone(&server.failures),
    );
    let failures = &server.failures;
    let held =
        held_count::until_all(&waiters, args.waiters, clients, held_before, failures).await?;
    let open_time = start.elapsed();
    if held.is_none() {
        eprintln!("the server does not say how many it holds: letting it settle");
        tokio::time::sleep(args.settle).await;
    }

    eprintln!("watching the idle server for {:?}", args.idle);
    let idle = server.meter.idle_usage(args.idle).await?;

    let pusher = Pusher {
        client: &server.push_client,
        queues: &queues,
        failures,
    };
    pusher.warm_up().await;
    eprintln!("waking {} times, one by one", args.wakes);
    let wakes = pusher.wake_one_by_one(&mut waiters, args.wakes).await;
    let mut wake_all = None;
    if args.wake_all {
        eprintln!("waking all");
        wake_all = Some(pusher.wake_all(&mut waiters, args.wakes as u64).await);
    }
    let early_answers = waiters.early();
    waiters.stop().await;
    let left_behind = match held_before {
        Some(before) => held_count::left_behind(clients, before).await,
        None => None,
    };
    let measurements = HoldMeasurements {
        waiters: args.waiters,
        held,
        open_time,
        early_answers,
        left_behind,
        memory_before,
        idle,
        wakes,
        wake_all,
    };
    Ok(measurements.figures())
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
