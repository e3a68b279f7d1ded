//! From the end of an enqueue to the start of the orchestration or activity that was enqueued.

use std::time::Instant;

use duroxide::providers::WorkItem;

use super::args::DurableArgs;
use super::measured_provider::MeasuredProvider;
use super::workload::{BEGIN, SIGNAL, Workload, pause};
use crate::figure::Figure;

/// Beyond the events of an orchestration that has scheduled nothing.
const ACTIVITY_ID: u64 = 1_000;

pub(super) async fn measure(
    provider: &MeasuredProvider,
    workload: &mut Workload,
    args: &DurableArgs,
) -> anyhow::Result<Vec<Figure>> {
    let (mut orchestrations, mut activities) = (Vec::new(), Vec::new());
    for number in 0..args.workflows {
        pause().await;
        let instance = format!("pick-up-{number}");
        workload.begin(&instance, BEGIN, "").await?;
        let enqueued = Instant::now();
        let begun = workload.signal_from(&instance).await?;
        // Zero if it has begun before the enqueue was answered.
        orchestrations.push(begun.saturating_duration_since(enqueued));
        workload.wait(&instance).await?;

        pause().await;
        // Enqueued directly, because a turn does not say when it has been committed. The result goes to
        // an orchestration that has ended, which ignores it.
        let name = format!("activity of {instance}");
        let item = WorkItem::ActivityExecute {
            instance,
            execution_id: 1,
            id: ACTIVITY_ID,
            name: SIGNAL.to_owned(),
            input: name.clone(),
            session_id: None,
            tag: None,
        };
        provider.inner.enqueue_for_worker(item).await?;
        let enqueued = Instant::now();
        let begun = workload.signal_from(&name).await?;
        activities.push(begun.saturating_duration_since(enqueued));
    }
    let mut figures = Figure::times("pick-up of an orchestration", orchestrations);
    figures.extend(Figure::times("pick-up of an activity", activities));
    Ok(figures)
}
