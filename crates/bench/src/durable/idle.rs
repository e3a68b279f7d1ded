//! What a runtime that has nothing to do costs the database.

use std::time::{Duration, Instant};

use super::args::DurableArgs;
use super::contestant::Contestant;
use super::work::{ONE_ACTIVITY, Work};
use crate::figure::{Figure, Unit};

/// A backend that has become idle reports its transactions after ten seconds.
const SETTLE: Duration = Duration::from_secs(11);

pub(super) async fn measure(
    contestant: &Contestant,
    work: &Work,
    args: &DurableArgs,
) -> anyhow::Result<Vec<Figure>> {
    // As one that has been used before.
    work.begin("idle", ONE_ACTIVITY, "").await?;
    work.wait("idle").await?;
    tokio::time::sleep(SETTLE.min(args.idle)).await;

    let (from, start) = (contestant.cost().await?, Instant::now());
    tokio::time::sleep(args.idle).await;
    let (to, time) = (contestant.cost().await?, start.elapsed().as_secs_f64());

    let mut figures = Vec::new();
    if let (Some(from), Some(to)) = (from.statements, to.statements) {
        let rate = (to - from) / time;
        figures.push(Figure::new("idle", Unit::StatementsPerSecond, rate));
    }
    let rate = (to.transactions - from.transactions) / time;
    figures.push(Figure::new(
        "  idle, transactions",
        Unit::TransactionsPerSecond,
        rate,
    ));
    Ok(figures)
}
