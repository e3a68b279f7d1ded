//! `bench feed`: how fast a server that speaks Jinaga's protocol saves facts, streams what is there,
//! and brings a new fact to the streams that it concerns.
//!
//! The program is the same for every server, and every phase has facts of its own. Side by side,
//! each phase runs on one server after the other.

mod args;
mod backfill;
mod facts;
mod ground;
mod live;
mod peer;
mod report;
mod save;
mod stream;
mod targets;

use std::fmt;

use anyhow::{Context, bail};

pub use args::FeedArgs;
use args::PhaseName;
use ground::Ground;
use live::Givens;
use report::Report;

use crate::calibrate;
use crate::contestant::Contestant;
use crate::figure::Figure;

/// Prints its report to standard output. Fails after that when requests failed: a missed target
/// is a finding, a failed request spoils the numbers.
pub(crate) async fn run(args: FeedArgs) -> anyhow::Result<()> {
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

async fn measure(args: &FeedArgs) -> anyhow::Result<Report> {
    let mut ground = Ground::prepare(args).await?;
    let mut report = Report::new(args, &ground.servers);
    for phase in phases(args) {
        for (place, server) in ground.servers.iter_mut().enumerate() {
            // So that none pays for what the one before it has left to be written.
            ground.databases.settle()?;
            eprintln!("{phase}: {}", server.name);
            match phase.measure(server, args).await {
                Ok(figures) => report.add(place, figures),
                Err(error) => {
                    let error = error.context(format!("{phase} was given up"));
                    eprintln!("{error:#}");
                    server.failures.add("phase", &format!("{error:#}"));
                }
            }
        }
    }
    report.finish(&ground.servers);
    Ok(report)
}

/// In the order of the report.
fn phases(args: &FeedArgs) -> Vec<Phase> {
    let mut phases = vec![Phase::Calibrate("before")];
    if args.wants(PhaseName::Save) {
        phases.extend(args.connections.iter().map(|&count| Phase::Save(count)));
        phases.push(Phase::Graphs);
    }
    if args.wants(PhaseName::Backfill) {
        phases.push(Phase::Backfill);
    }
    if args.wants(PhaseName::Live) {
        for givens in [Givens::Distinct, Givens::One] {
            let live = |&count| Phase::Live(givens, count);
            phases.extend(args.streams.iter().map(live));
        }
    }
    phases.push(Phase::Calibrate("after"));
    phases
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Calibrate(&'static str),
    /// Of single facts, over so many connections.
    Save(usize),
    Graphs,
    Backfill,
    /// So many streams.
    Live(Givens, usize),
}

/// How many connections ask for what costs nothing.
const CALIBRATION: usize = 16;

impl Phase {
    async fn measure(
        self,
        server: &mut Contestant,
        args: &FeedArgs,
    ) -> anyhow::Result<Vec<Figure>> {
        match self {
            Self::Calibrate(when) => calibrate::measure(server, CALIBRATION, when)
                .await
                .map(|figure| vec![figure])
                .context("is it a server?"),
            Self::Save(connections) => save::single(server, args, connections).await,
            Self::Graphs => save::graphs(server, args).await,
            Self::Backfill => backfill::measure(server, args).await,
            Self::Live(givens, count) => live::measure(server, args, givens, count).await,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calibrate(when) => write!(f, "calibration {when}"),
            Self::Save(connections) => write!(f, "{}", save::name(*connections)),
            Self::Graphs => write!(f, "{}", save::GRAPHS),
            Self::Backfill => write!(f, "backfill"),
            Self::Live(givens, count) => write!(f, "{}", live::name(*givens, *count)),
        }
    }
}
