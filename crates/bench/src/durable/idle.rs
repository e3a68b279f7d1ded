//! What a runtime that has nothing to do costs the database.

use std::time::Instant;

use super::args::DurableArgs;
use super::measured_provider::MeasuredProvider;
use super::workload::{ONE_ACTIVITY, Workload};
use crate::figure::{Figure, Unit};
use crate::meter::COUNTED_WITHIN;

pub(super) async fn measure(
    provider: &MeasuredProvider,
    workload: &Workload,
    args: &DurableArgs,
) -> anyhow::Result<Vec<Figure>> {
    // Used before, as a real runtime has been.
    workload.begin("idle", ONE_ACTIVITY, "").await?;
    workload.wait("idle").await?;
    tokio::time::sleep(COUNTED_WITHIN.min(args.idle)).await;

    let (from, start) = (provider.usage().await?, Instant::now());
    tokio::time::sleep(args.idle).await;
    let (to, time) = (provider.usage().await?, start.elapsed().as_secs_f64());

    let mut figures = Vec::new();
    if let (Some(from), Some(to)) = (from.statements, to.statements) {
        let rate = (to - from) / time;
        figures.push(Figure::new("idle", Unit::STATEMENTS_PER_SECOND, rate));
    }
    let (unit, rate) = (
        Unit::TRANSACTIONS_PER_SECOND,
        (to.transactions - from.transactions) / time,
    );
    figures.push(Figure::new("  idle, transactions", unit, rate));
    Ok(figures)
}
