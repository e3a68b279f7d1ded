//! Every message to each of several groups.

use super::args::QueueArgs;
use super::drain::{Drain, figures, pilot_and_run};
use crate::contestant::Contestant;
use crate::figure::Figure;

const BATCH: usize = 10;

pub(super) async fn measure(
    contestant: &Contestant,
    args: &QueueArgs,
) -> anyhow::Result<Vec<Figure>> {
    let drain = |phase: &str| Drain {
        queue: contestant.named(&format!("fan-out-{phase}")),
        groups: (0..args.groups).map(|group| format!("g{group}")).collect(),
        connections: (args.connections / args.groups).max(1),
        batch: BATCH,
        messages: 0,
        limit: args.seconds * 4,
    };
    let drained = pilot_and_run(contestant, args, drain).await?;
    let name = format!("fan-out to {} groups, batch {BATCH}", args.groups);
    Ok(figures(&name, drained))
}
