//! How many facts are on disk per second.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::args::FeedArgs;
use super::facts::Root;
use crate::figure::{Figure, Unit};
use crate::load::Throughput;
use crate::server::{RETRY_PAUSE, Server};

/// How many facts a graph has, its root not counted.
const GRAPH: usize = 100;
const GRAPH_CONNECTIONS: usize = 16;
pub(super) const GRAPHS: &str = "saves of graphs of 100 facts, 16 connections";
/// Not counted: connections are opened, types are learned.
const WARM_UP: Duration = Duration::from_secs(1);

pub(super) fn name(connections: usize) -> String {
    let plural = if connections == 1 { "" } else { "s" };
    format!("saves of one fact, {connections} connection{plural}")
}

pub(super) async fn single(
    server: &Server,
    args: &FeedArgs,
    connections: usize,
) -> anyhow::Result<Vec<Figure>> {
    let name = name(connections);
    let saves = Saves {
        phase: format!("single-{connections}"),
        connections,
        facts: 1,
    };
    let saved = saves.run(server, args.seconds).await;
    Ok(Figure::rate(&name, Unit::SAVES_PER_SECOND, "answer", saved))
}

pub(super) async fn graphs(server: &Server, args: &FeedArgs) -> anyhow::Result<Vec<Figure>> {
    let saves = Saves {
        phase: "graphs".to_owned(),
        connections: GRAPH_CONNECTIONS,
        facts: GRAPH,
    };
    let mut saved = saves.run(server, args.seconds).await;
    saved.per_second *= GRAPH as f64;
    Ok(Figure::rate(
        GRAPHS,
        Unit::FACTS_PER_SECOND,
        "answer",
        saved,
    ))
}

struct Saves {
    phase: String,
    connections: usize,
    /// How many facts each save brings.
    facts: usize,
}

impl Saves {
    /// Each connection has a root of its own.
    async fn run(&self, server: &Server, time: Duration) -> Throughput {
        let from = Instant::now() + WARM_UP;
        let until = from + time;
        let mut tasks = JoinSet::new();
        for connection in 0..self.connections {
            let root = Root::new(server, &format!("{}-{connection}", self.phase));
            let (mut connection, failures) = (server.connection(), server.failures.clone());
            let facts = self.facts;
            tasks.spawn(async move {
                let (mut times, mut next) = (Vec::new(), 0);
                while Instant::now() < until {
                    let sent = Instant::now();
                    match root.save(&mut connection, next..next + facts).await {
                        Ok(()) if sent >= from => times.push(sent.elapsed()),
                        Ok(()) => {}
                        Err(error) => {
                            failures.add_error("save", &error);
                            tokio::time::sleep(RETRY_PAUSE).await;
                        }
                    }
                    next += facts;
                }
                times
            });
        }
        let times = tasks.join_all().await.concat();
        Throughput {
            // The last saves end a little after the time.
            per_second: times.len() as f64 / from.elapsed().as_secs_f64(),
            times,
        }
    }
}
