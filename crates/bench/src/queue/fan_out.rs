//! Every message to each of several groups.

use super::args::QueueArgs;
use super::drain::{Drain, OVERTIME, figures, pilot_and_run};
use crate::figure::Figure;
use crate::server::Server;

const BATCH: usize = 10;

pub(super) async fn measure(server: &Server, args: &QueueArgs) -> anyhow::Result<Vec<Figure>> {
    let drain = |phase: &str| Drain {
        queue: server.unique_name(&format!("fan-out-{phase}")),
        groups: (0..args.groups).map(|group| format!("g{group}")).collect(),
        connections: (args.connections / args.groups).max(1),
        batch: BATCH,
        messages: 0,
        limit: args.seconds * OVERTIME,
    };
    let drained = pilot_and_run(server, args, drain).await?;
    let name = format!("fan-out to {} groups, batch {BATCH}", args.groups);
    Ok(figures(&name, drained))
}
