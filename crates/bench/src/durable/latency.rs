//! A workflow of one activity, one at a time, from before its start to its end.

use std::time::Instant;

use anyhow::Context;

use super::args::DurableArgs;
use super::contestant::Contestant;
use super::work::{ONE_ACTIVITY, PATIENCE, Work, completed, pause};
use crate::figure::Figure;

/// How the end is seen.
#[derive(Clone, Copy)]
enum End {
    /// By the orchestration's own code in its last turn: nobody asks meanwhile.
    Code,
    /// By duroxide's client, which polls.
    Client,
    /// By a caller of our provider, who is woken.
    Woken,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "one activity, to its last turn",
            Self::Client => "one activity, as a polling client sees it",
            Self::Woken => "one activity, as a woken caller sees it",
        }
    }
}

pub(super) async fn measure(
    contestant: &Contestant,
    work: &mut Work,
    args: &DurableArgs,
) -> anyhow::Result<Vec<Figure>> {
    let mut ends = vec![End::Code, End::Client];
    if contestant.own.is_some() {
        ends.push(End::Woken);
    }
    let mut figures = Vec::new();
    for end in ends {
        let mut latencies = Vec::new();
        for number in 0..args.workflows {
            pause().await;
            let instance = format!("{}-{number}", end.name());
            let start = Instant::now();
            work.begin(&instance, ONE_ACTIVITY, "").await?;
            match end {
                End::Code => {
                    let told = work.told_by(&instance).await?;
                    latencies.push(told.saturating_duration_since(start));
                    // Its last commit, before the next begins.
                    work.wait(&instance).await?;
                }
                End::Client => {
                    work.wait(&instance).await?;
                    latencies.push(start.elapsed());
                }
                End::Woken => {
                    let own = contestant.own.as_ref().context("not our provider")?;
                    let status = own.wait_for_orchestration(&instance, PATIENCE).await?;
                    latencies.push(start.elapsed());
                    completed(&instance, &status)?;
                }
            }
        }
        figures.extend(Figure::times(end.name(), latencies));
    }
    Ok(figures)
}
