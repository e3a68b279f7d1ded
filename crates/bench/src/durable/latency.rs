//! A workflow of one activity, one at a time, from before its start to its end.

use std::time::Instant;

use anyhow::Context;

use super::args::DurableArgs;
use super::measured_provider::MeasuredProvider;
use super::workload::{ONE_ACTIVITY, ORCHESTRATION_TIMEOUT, Workload, completed, pause};
use crate::figure::Figure;

/// How the end of a workflow is noticed.
#[derive(Clone, Copy)]
enum EndNotice {
    /// By the orchestration's own code in its last turn: nothing polls meanwhile.
    Code,
    /// By duroxide's client, which polls.
    Client,
    /// By a caller of our provider, which is woken.
    Woken,
}

impl EndNotice {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "one activity, to its last turn",
            Self::Client => "one activity, as a polling client sees it",
            Self::Woken => "one activity, as a woken caller sees it",
        }
    }
}

pub(super) async fn measure(
    provider: &MeasuredProvider,
    workload: &mut Workload,
    args: &DurableArgs,
) -> anyhow::Result<Vec<Figure>> {
    let mut ends = vec![EndNotice::Code, EndNotice::Client];
    if provider.own.is_some() {
        ends.push(EndNotice::Woken);
    }
    let mut figures = Vec::new();
    for end in ends {
        let mut latencies = Vec::new();
        for number in 0..args.workflows {
            pause().await;
            let instance = format!("{}-{number}", end.name());
            let start = Instant::now();
            workload.begin(&instance, ONE_ACTIVITY, "").await?;
            match end {
                EndNotice::Code => {
                    let ended = workload.signal_from(&instance).await?;
                    latencies.push(ended.saturating_duration_since(start));
                    // Its last commit comes before the next workflow.
                    workload.wait(&instance).await?;
                }
                EndNotice::Client => {
                    workload.wait(&instance).await?;
                    latencies.push(start.elapsed());
                }
                EndNotice::Woken => {
                    let own = provider.own.as_ref().context("not our provider")?;
                    let end = own.wait_for_orchestration(&instance, ORCHESTRATION_TIMEOUT);
                    let status = end.await?;
                    latencies.push(start.elapsed());
                    completed(&instance, &status)?;
                }
            }
        }
        figures.extend(Figure::times(end.name(), latencies));
    }
    Ok(figures)
}
