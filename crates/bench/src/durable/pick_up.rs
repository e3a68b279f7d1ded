//! From the end of an enqueue to the start of what was enqueued.

use std::time::Instant;

use duroxide::providers::WorkItem;

use super::args::DurableArgs;
use super::contestant::Contestant;
use super::work::{BEGIN, TELL, Work, pause};
use crate::figure::Figure;

/// Beyond the events of an orchestration that has scheduled nothing.
const ACTIVITY_ID: u64 = 1_000;

pub(super) async fn measure(
    contestant: &Contestant,
    work: &mut Work,
    args: &DurableArgs,
) -> anyhow::Result<Vec<Figure>> {
    let (mut orchestrations, mut activities) = (Vec::new(), Vec::new());
    for number in 0..args.workflows {
        pause().await;
        let instance = format!("pick-up-{number}");
        work.begin(&instance, BEGIN, "").await?;
        let enqueued = Instant::now();
        let told = work.told_by(&instance).await?;
        // Nothing if it has begun before its enqueue's answer was here.
        orchestrations.push(told.saturating_duration_since(enqueued));
        work.wait(&instance).await?;

        pause().await;
        // Straight into the queue, as no turn tells when it has been committed. Its result comes
        // to an orchestration that has ended, which takes no notice.
        let name = format!("activity of {instance}");
        let item = WorkItem::ActivityExecute {
            instance,
            execution_id: 1,
            id: ACTIVITY_ID,
            name: TELL.to_owned(),
            input: name.clone(),
            session_id: None,
            tag: None,
        };
        contestant.provider.enqueue_for_worker(item).await?;
        let enqueued = Instant::now();
        let told = work.told_by(&name).await?;
        activities.push(told.saturating_duration_since(enqueued));
    }
    let mut figures = Figure::times("pick-up of an orchestration", orchestrations);
    figures.extend(Figure::times("pick-up of an activity", activities));
    Ok(figures)
}
