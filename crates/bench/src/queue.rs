//! `bench queue`: how fast a server that speaks Queen's protocol takes messages, gives them out,
//! and wakes who waits for them.
//!
//! The program is the same for every server, and every phase has queues of its own. Side by side,
//! each phase runs on one server after the other, so that a machine that gets slower on the way
//! does so for all of them.

mod answers;
mod args;
mod bodies;
mod drain;
mod fan_out;
mod ground;
mod idle;
mod partitions;
mod push;
mod report;
mod targets;
mod wake;

use anyhow::{Context, bail};

use args::PhaseName;
pub use args::QueueArgs;
use ground::Ground;
use report::Report;

use crate::calibrate;
use crate::contestant::Contestant;
use crate::figure::Figure;

/// Prints its report to standard output. Fails after that when requests failed: a missed target
/// is a finding, a failed request spoils the numbers.
pub(crate) async fn run(args: QueueArgs) -> anyhow::Result<()> {
    args.check()?;
    let json = args.json;
    // One thread of its own: cheaper than many, and what the load costs is taken from the server.
    let report = tokio::task::spawn_blocking(move || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(measure(&args))
    })
    .await??;
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    if let Some(trouble) = report.trouble() {
        bail!(trouble);
    }
    Ok(())
}

async fn measure(args: &QueueArgs) -> anyhow::Result<Report> {
    let ground = Ground::prepare(args).await?;
    let mut report = Report::new(args, &ground.contestants);
    for phase in phases(args) {
        ground.databases.settle()?;
        for (place, contestant) in ground.contestants.iter().enumerate() {
            eprintln!("{phase}: {}", contestant.name);
            match phase.measure(contestant, args).await {
                Ok(figures) => report.add(place, figures),
                Err(error) => {
                    let error = error.context(format!("{phase} was given up"));
                    contestant.failures.add("phase", &format!("{error:#}"));
                }
            }
        }
    }
    report.finish(&ground.contestants);
    Ok(report)
}

/// In the order of the report.
fn phases(args: &QueueArgs) -> Vec<Phase> {
    let mut phases = vec![Phase::Calibrate("before")];
    let mut add = |name: PhaseName, more: &mut dyn Iterator<Item = Phase>| {
        if args.wants(name) {
            phases.extend(more);
        }
    };
    let batches = || args.batches.iter().copied();
    add(PhaseName::Push, &mut batches().map(Phase::Push));
    add(PhaseName::Drain, &mut batches().map(Phase::Drain));
    for (name, phase) in [
        (PhaseName::Wake, Phase::Wake),
        (PhaseName::Idle, Phase::Idle),
        (PhaseName::Partitions, Phase::Partitions),
        (PhaseName::FanOut, Phase::FanOut),
    ] {
        add(name, &mut std::iter::once(phase));
    }
    phases.push(Phase::Calibrate("after"));
    phases
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Calibrate(&'static str),
    Push(usize),
    Drain(usize),
    Wake,
    Idle,
    Partitions,
    FanOut,
}

impl Phase {
    async fn measure(
        self,
        contestant: &Contestant,
        args: &QueueArgs,
    ) -> anyhow::Result<Vec<Figure>> {
        match self {
            Self::Calibrate(when) => calibrate::measure(contestant, args.connections, when)
                .await
                .map(|figure| vec![figure])
                .context("is it a server of this protocol?"),
            Self::Push(batch) => push::measure(contestant, args, batch).await,
            Self::Drain(batch) => drain::measure(contestant, args, batch).await,
            Self::Wake => wake::measure(contestant, args).await,
            Self::Idle => idle::measure(contestant, args).await,
            Self::Partitions => partitions::measure(contestant, args).await,
            Self::FanOut => fan_out::measure(contestant, args).await,
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Calibrate(when) => write!(f, "calibration {when}"),
            Self::Push(batch) => write!(f, "push, batch {batch}"),
            Self::Drain(batch) => write!(f, "drain, batch {batch}"),
            Self::Wake => write!(f, "wake"),
            Self::Idle => write!(f, "idle"),
            Self::Partitions => write!(f, "partitions"),
            Self::FanOut => write!(f, "fan-out"),
        }
    }
}
