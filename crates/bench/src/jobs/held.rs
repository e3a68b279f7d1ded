//! Reads that wait for a provider, many at once, and warm reads beside them; then their results.

mod reads;

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::args::JobsArgs;
use super::provider::Provider;
use super::server::JobsServer;
use super::warm::WarmReads;
use crate::figure::{Figure, Unit};
use crate::load;
use crate::server::{REQUEST_TIMEOUT, Server};
pub(super) use reads::HeldReads;

/// Of the 30 s for which a read is held; the rest is for the warm reads and the uploads.
const TAKEN_IN_WITHIN: Duration = Duration::from_secs(8);
/// So many reads that are not held tell how many the server can take in.
const PILOT_READS: usize = 200;
const CONNECTIONS: usize = 16;
const BYTES: usize = 200;

/// Whether the held reads wait for different results or for one.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadKeys {
    Distinct,
    Identical,
}

impl ReadKeys {
    pub(super) fn of(self, read: usize) -> String {
        match self {
            Self::Distinct => format!("held-{read}"),
            Self::Identical => "held".to_owned(),
        }
    }
}

impl fmt::Display for ReadKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Distinct => "distinct keys",
            Self::Identical => "one key",
        })
    }
}

pub(super) async fn measure(
    host: &mut JobsServer,
    args: &JobsArgs,
    keys: ReadKeys,
) -> anyhow::Result<Vec<Figure>> {
    host.restart().await?;
    let server = &host.server;
    let phase = match keys {
        ReadKeys::Distinct => "held-distinct",
        ReadKeys::Identical => "held-identical",
    };
    let provider = Provider::register(server, phase).await?;
    let warm = WarmReads::upload(server, &provider, BYTES, CONNECTIONS).await?;
    let alone = warm.run(server, args.seconds, 1).await;
    let fitting = taken_in_per_second(server, &provider).await? * TAKEN_IN_WITHIN.as_secs_f64();
    let count = (fitting as usize).clamp(1, args.held);

    let meter = server.meter().await?;
    let before = meter.read().await?;
    let start = Instant::now();
    let held = HeldReads::open(server, &provider, keys, count);
    held.until_taken_in(server, &meter, count).await?;
    let open_time = start.elapsed();
    let after = meter.read().await?;
    let beside = warm.run(server, args.seconds, 1).await;
    let answered = held.answer(server, &provider).await;

    let name = format!("held reads, {keys}");
    let detail = |what: &str| format!("  {name}, {what}");
    let mut figures = vec![
        Figure::new(&name, Unit::READS, count as f64),
        Figure::time(detail("taken in within"), open_time),
    ];
    if let Some((before, after)) = before.memory_bytes.zip(after.memory_bytes) {
        let bytes = (after - before) / count as f64;
        figures.push(Figure::new(memory_name(keys), Unit::BYTES, bytes));
    }
    let per_second = answered.times.len() as f64 / answered.time.as_secs_f64().max(1e-6);
    for (what, rate) in [
        ("warm reads before", alone.per_second),
        ("warm reads beside", beside.per_second),
        ("answered when the results come", per_second),
    ] {
        figures.push(Figure::new(detail(what), Unit::READS_PER_SECOND, rate));
    }
    figures.extend(Figure::times(
        &format!("{name}, upload sent to answer"),
        answered.times,
    ));
    provider.leave(server).await?;
    Ok(figures)
}

pub(super) fn memory_name(keys: ReadKeys) -> String {
    format!("held reads, {keys}, memory of each")
}

/// Measured by reads of new keys that are dispatched and given up at once.
async fn taken_in_per_second(server: &Server, provider: &Provider) -> anyhow::Result<f64> {
    let start = Instant::now();
    load::for_each(
        server,
        CONNECTIONS,
        PILOT_READS,
        async |connection, read| {
            let request = provider.read(server, &format!("pilot-{read}"));
            let request = request.held_for(Duration::ZERO);
            let response = connection.send(request, REQUEST_TIMEOUT).await?;
            // There is no result yet: 504, or 404 where the server is set so.
            let has_none = matches!(response.status.as_u16(), 404 | 504);
            anyhow::ensure!(has_none, "{}", response.describe());
            Ok(())
        },
    )
    .await?;
    Ok(PILOT_READS as f64 / start.elapsed().as_secs_f64())
}
