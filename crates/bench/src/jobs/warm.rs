//! Reads of what is there already: as many as the connections can ask for.

use std::time::Duration;

use anyhow::ensure;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::args::JobsArgs;
use super::provider::Provider;
use crate::contestant::{Contestant, PATIENCE, PAUSE};
use crate::figure::{Figure, Unit};
use crate::line::{Ask, Line};

pub(super) async fn measure(
    server: &Contestant,
    args: &JobsArgs,
    bytes: usize,
) -> anyhow::Result<Vec<Figure>> {
    let provider = Provider::register(server, &format!("warm-{bytes}")).await?;
    let mut figures = Vec::new();
    for &connections in &args.connections {
        // Each time anew: results are kept for minutes, and there may be many measurements.
        let reads = WarmReads::put(server, &provider, bytes, connections).await?;
        let read = reads.run(server, args.seconds, args.rounds).await;
        let name = name(bytes, connections);
        figures.push(Figure::new(&name, Unit::ReadsPerSecond, read.per_second));
        figures.extend(Figure::details(&format!("{name}, answer"), read.times));
    }
    provider.leave(server).await?;
    Ok(figures)
}

pub(super) fn name(bytes: usize, connections: usize) -> String {
    let size = match bytes {
        1_000.. if bytes.is_multiple_of(1_000) => format!("{} kB", bytes / 1_000),
        _ => format!("{bytes} bytes"),
    };
    let plural = if connections == 1 { "" } else { "s" };
    format!("warm read of {size}, {connections} connection{plural}")
}

/// The same result, read again and again.
pub(super) struct WarmReads {
    read: Ask,
    bytes: usize,
    connections: usize,
}

pub(super) struct Read {
    /// In the median round.
    pub(super) per_second: f64,
    /// Of all rounds.
    times: Vec<Duration>,
}

impl WarmReads {
    pub(super) async fn put(
        server: &Contestant,
        provider: &Provider,
        bytes: usize,
        connections: usize,
    ) -> anyhow::Result<Self> {
        const KEY: &str = "warm";
        provider.put(server, KEY, bytes).await?;
        Ok(Self {
            read: provider.read(server, KEY),
            bytes,
            connections,
        })
    }

    /// `rounds` of `time`, one after the other without a pause.
    pub(super) async fn run(&self, server: &Contestant, time: Duration, rounds: usize) -> Read {
        // Not counted: connections are opened.
        let from = Instant::now() + (time / 4).min(Duration::from_secs(1));
        let mut tasks = JoinSet::new();
        for _ in 0..self.connections {
            let reader = Reader {
                line: server.line(),
                read: self.read.clone(),
                bytes: self.bytes,
            };
            let failures = server.failures.clone();
            tasks.spawn(async move {
                let mut reader = reader;
                let (mut counts, mut times) = (vec![0_usize; rounds], Vec::new());
                loop {
                    let sent = Instant::now();
                    let answer = reader.read().await;
                    let answered = Instant::now();
                    let round = answered
                        .checked_duration_since(from)
                        .map(|since| since.div_duration_f64(time) as usize);
                    if round.is_some_and(|round| round >= rounds) {
                        return (counts, times);
                    }
                    if let Err(error) = answer {
                        failures.add("warm read", &format!("{error:#}"));
                        tokio::time::sleep(PAUSE).await;
                    } else if let Some(round) = round {
                        counts[round] += 1;
                        times.push(answered - sent);
                    }
                }
            });
        }
        let (mut sums, mut all) = (vec![0_usize; rounds], Vec::new());
        for (counts, mut times) in tasks.join_all().await {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count;
            }
            all.append(&mut times);
        }
        sums.sort_unstable();
        Read {
            per_second: sums[rounds / 2] as f64 / time.as_secs_f64(),
            times: all,
        }
    }
}

/// One connection.
struct Reader {
    line: Line,
    read: Ask,
    bytes: usize,
}

impl Reader {
    async fn read(&mut self) -> anyhow::Result<()> {
        let answer = self.line.send(self.read.clone(), PATIENCE).await?;
        ensure!(answer.status.is_success(), "{}", answer.shown());
        let bytes = answer.body.len();
        ensure!(bytes == self.bytes, "{bytes} bytes of {}", self.bytes);
        Ok(())
    }
}
