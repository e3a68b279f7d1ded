//! How late an orchestration goes on after its timer was due.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use duroxide::EventKind;
use tokio::time::{MissedTickBehavior, interval};

use super::args::DurableArgs;
use super::measured_provider::MeasuredProvider;
use super::workload::{TIMER, Workload};
use crate::figure::Figure;

const MILLIS: std::ops::RangeInclusive<u64> = 200..=2_000;
/// Seldom enough that a turn waits for its timer and not for other turns.
const PACE: Duration = Duration::from_millis(50);

pub(super) async fn measure(
    provider: &MeasuredProvider,
    workload: &mut Workload,
    args: &DurableArgs,
) -> anyhow::Result<Vec<Figure>> {
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..args.timers {
        pace.tick().await;
        let millis = rand::random_range(MILLIS);
        workload
            .begin(&format!("timer-{number}"), TIMER, millis.to_string())
            .await?;
    }
    // A turn that is repeated sends its signal again.
    let mut went_on: HashMap<String, SystemTime> = HashMap::new();
    while went_on.len() < args.timers {
        let signal = workload.next().await?;
        went_on.entry(signal.sender).or_insert(signal.clock);
    }
    let mut lateness = Vec::new();
    for (instance, at) in went_on {
        workload.wait(&instance).await?;
        let due = due(provider, &instance).await?;
        lateness.push(at.duration_since(due).unwrap_or_default());
    }
    Ok(Figure::times("timer lateness", lateness))
}

async fn due(provider: &MeasuredProvider, instance: &str) -> anyhow::Result<SystemTime> {
    let history = provider.inner.read(instance).await?;
    let due = history.iter().find_map(|event| match event.kind {
        EventKind::TimerCreated { fire_at_ms } => Some(fire_at_ms),
        _ => None,
    });
    let due = due.with_context(|| format!("{instance} has no timer"))?;
    Ok(UNIX_EPOCH + Duration::from_millis(due))
}
