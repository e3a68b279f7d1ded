//! Reads of a result that is there already: as many as the connections can send.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;

use super::args::JobsArgs;
use super::provider::Provider;
use crate::connection::{Connection, Request};
use crate::failures::Failures;
use crate::figure::{Figure, Unit};
use crate::load::{Operation, Throughput};
use crate::server::{REQUEST_TIMEOUT, Server};

pub(super) async fn measure(
    server: &Server,
    args: &JobsArgs,
    bytes: usize,
) -> anyhow::Result<Vec<Figure>> {
    let provider = Provider::register(server, &format!("warm-{bytes}")).await?;
    let mut figures = Vec::new();
    for &connections in &args.connections {
        // Uploaded each time: results are kept for minutes, and there may be many measurements.
        let reads = WarmReads::upload(server, &provider, bytes, connections).await?;
        let read = reads.run(server, args.seconds, args.rounds).await;
        let (name, unit) = (name(bytes, connections), Unit::READS_PER_SECOND);
        figures.extend(Figure::rate(&name, unit, "answer", read));
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

/// Reads of the same result, again and again.
pub(super) struct WarmReads {
    read: Request,
    bytes: usize,
    connections: usize,
}

impl WarmReads {
    pub(super) async fn upload(
        server: &Server,
        provider: &Provider,
        bytes: usize,
        connections: usize,
    ) -> anyhow::Result<Self> {
        const KEY: &str = "warm";
        provider.upload_result(server, KEY, bytes).await?;
        Ok(Self {
            read: provider.read(server, KEY),
            bytes,
            connections,
        })
    }

    pub(super) async fn run(&self, server: &Server, time: Duration, rounds: usize) -> Throughput {
        let readers = (0..self.connections).map(|_| Reader {
            connection: server.connection(),
            read: self.read.clone(),
            bytes: self.bytes,
            failures: server.failures.clone(),
        });
        Throughput::measure(readers, time, rounds).await
    }
}

/// One connection that reads.
struct Reader {
    connection: Connection,
    read: Request,
    bytes: usize,
    failures: Arc<Failures>,
}

impl Reader {
    async fn read(&mut self) -> anyhow::Result<()> {
        let request = self.read.clone();
        let response = self.connection.send_ok(request, REQUEST_TIMEOUT).await?;
        let bytes = response.body.len();
        ensure!(bytes == self.bytes, "{bytes} bytes of {}", self.bytes);
        Ok(())
    }
}

impl Operation for Reader {
    async fn run(&mut self) -> usize {
        match self.read().await {
            Ok(()) => 1,
            Err(error) => {
                self.failures.add_error("warm read", &error);
                0
            }
        }
    }
}
