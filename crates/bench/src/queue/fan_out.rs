//! Every message to each of several groups.

use super::args::QueueArgs;
use super::drain::{Drain, figures};
use crate::figure::Figure;
use crate::server::Server;

const BATCH: usize = 10;

pub(super) async fn measure(server: &Server, args: &QueueArgs) -> anyhow::Result<Vec<Figure>> {
    let drain = Drain {
        groups: (0..args.groups).map(|group| format!("g{group}")).collect(),
        connections: (args.connections / args.groups).max(1),
        ..Drain::new(server.unique_name("fan-out"), args, BATCH)
    };
    let drained = drain.pilot_and_run(server, args).await?;
    let name = format!("fan-out to {} groups, batch {BATCH}", args.groups);
    Ok(figures(&name, drained))
}
