//! How many facts are on disk per second.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::args::FeedArgs;
use super::facts::Root;
use crate::contestant::{Contestant, PAUSE};
use crate::figure::{Figure, Unit};

/// Facts of a graph, its root not counted.
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
    server: &Contestant,
    args: &FeedArgs,
    connections: usize,
) -> anyhow::Result<Vec<Figure>> {
    let name = name(connections);
    let saves = Saves {
        phase: format!("single-{connections}"),
        connections,
        facts: 1,
    };
    let found = saves.run(server, args.seconds).await;
    let mut figures = vec![Figure::new(&name, Unit::SavesPerSecond, found.per_second)];
    figures.extend(Figure::details(&format!("{name}, answer"), found.times));
    Ok(figures)
}

pub(super) async fn graphs(server: &Contestant, args: &FeedArgs) -> anyhow::Result<Vec<Figure>> {
    let saves = Saves {
        phase: "graphs".to_owned(),
        connections: GRAPH_CONNECTIONS,
        facts: GRAPH,
    };
    let found = saves.run(server, args.seconds).await;
    let facts = found.per_second * GRAPH as f64;
    let mut figures = vec![Figure::new(GRAPHS, Unit::FactsPerSecond, facts)];
    figures.extend(Figure::details(&format!("{GRAPHS}, answer"), found.times));
    Ok(figures)
}

struct Saves {
    phase: String,
    connections: usize,
    /// In each save.
    facts: usize,
}

struct Found {
    per_second: f64,
    times: Vec<Duration>,
}

impl Saves {
    /// Each connection has a root of its own.
    async fn run(&self, server: &Contestant, time: Duration) -> Found {
        let from = Instant::now() + WARM_UP;
        let until = from + time;
        let mut tasks = JoinSet::new();
        for connection in 0..self.connections {
            let root = Root::new(server, &format!("{}-{connection}", self.phase));
            let (mut line, failures) = (server.line(), server.failures.clone());
            let facts = self.facts;
            tasks.spawn(async move {
                let (mut times, mut next) = (Vec::new(), 0);
                while Instant::now() < until {
                    let sent = Instant::now();
                    match root.save(&mut line, next..next + facts).await {
                        Ok(()) if sent >= from => times.push(sent.elapsed()),
                        Ok(()) => {}
                        Err(error) => {
                            failures.add("save", &format!("{error:#}"));
                            tokio::time::sleep(PAUSE).await;
                        }
                    }
                    next += facts;
                }
                times
            });
        }
        let times = tasks.join_all().await.concat();
        Found {
            // The last ones end a little after the time.
            per_second: times.len() as f64 / from.elapsed().as_secs_f64(),
            times,
        }
    }
}
