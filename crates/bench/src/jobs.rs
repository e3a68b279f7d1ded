//! `bench jobs`: how fast a server that speaks zndraw-joblib's protocol reads from providers, holds
//! reads, and brings tasks to their end.
//!
//! The program is the same for every server, and every phase has rooms of its own. Side by side,
//! each phase runs on one server after the other.

mod args;
mod cold;
mod ground;
mod held;
mod host;
mod idle;
mod job;
mod peer;
mod provider;
mod report;
mod targets;
mod tasks;
mod wake;
mod warm;
mod worker;

use std::fmt;

use anyhow::{Context, bail};

pub use args::JobsArgs;
use args::PhaseName;
use ground::Ground;
use held::Keys;
use host::Host;
use report::Report;
use tasks::Claims;

use crate::calibrate;
use crate::figure::Figure;

/// Prints its report to standard output. Fails after that when requests failed: a missed target
/// is a finding, a failed request spoils the numbers.
pub(crate) async fn run(args: JobsArgs) -> anyhow::Result<()> {
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

async fn measure(args: &JobsArgs) -> anyhow::Result<Report> {
    let mut ground = Ground::prepare(args).await?;
    let mut report = Report::new(args, &ground.hosts);
    for phase in phases(args) {
        for (place, host) in ground.hosts.iter_mut().enumerate() {
            // So that none pays for what the one before it has left to be written.
            ground.databases.settle()?;
            eprintln!("{phase}: {}", host.server.name);
            match phase.measure(host, args).await {
                Ok(figures) => report.add(place, figures),
                Err(error) => {
                    let error = error.context(format!("{phase} was given up"));
                    eprintln!("{error:#}");
                    host.server.failures.add("phase", &format!("{error:#}"));
                }
            }
        }
    }
    report.finish(&ground.hosts);
    Ok(report)
}

/// In the order of the report.
fn phases(args: &JobsArgs) -> Vec<Phase> {
    let mut phases = vec![Phase::Calibrate("before")];
    let mut add = |name: PhaseName, more: &mut dyn Iterator<Item = Phase>| {
        if args.wants(name) {
            phases.extend(more);
        }
    };
    let workers = || args.workers.iter().copied();
    add(PhaseName::Cold, &mut std::iter::once(Phase::Cold));
    let warm = args.bodies.iter().map(|&bytes| Phase::Warm(bytes));
    add(PhaseName::Warm, &mut { warm });
    let held = [Keys::Distinct, Keys::Identical].into_iter();
    add(PhaseName::Held, &mut held.map(Phase::Held));
    for claims in [Claims::Asking, Claims::Held] {
        let tasks = workers().map(|workers| Phase::Tasks(workers, claims));
        add(PhaseName::Tasks, &mut { tasks });
    }
    add(PhaseName::Wake, &mut std::iter::once(Phase::Wake));
    add(PhaseName::Idle, &mut std::iter::once(Phase::Idle));
    phases.push(Phase::Calibrate("after"));
    phases
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Calibrate(&'static str),
    Cold,
    /// Bytes of a body.
    Warm(usize),
    Held(Keys),
    /// How many workers.
    Tasks(usize, Claims),
    Wake,
    Idle,
}

impl Phase {
    async fn measure(self, host: &mut Host, args: &JobsArgs) -> anyhow::Result<Vec<Figure>> {
        let server = &host.server;
        match self {
            Self::Calibrate(when) => calibrate::measure(server, CALIBRATION, when)
                .await
                .map(|figure| vec![figure])
                .context("is it a server?"),
            Self::Cold => cold::measure(server, args).await,
            Self::Warm(bytes) => warm::measure(server, args, bytes).await,
            Self::Held(keys) => held::measure(host, args, keys).await,
            // Who does not hold claims has nothing to show here.
            Self::Tasks(_, Claims::Held) | Self::Idle if !host.holds_claims => Ok(Vec::new()),
            Self::Tasks(workers, claims) => tasks::measure(server, args, workers, claims).await,
            Self::Wake => wake::measure(server, args).await,
            Self::Idle => idle::measure(server, args).await,
        }
    }
}

/// How many connections ask for what costs nothing.
const CALIBRATION: usize = 16;

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calibrate(when) => write!(f, "calibration {when}"),
            Self::Cold => write!(f, "cold reads"),
            Self::Warm(bytes) => write!(f, "warm reads, {bytes} bytes"),
            Self::Held(keys) => write!(f, "held reads, {keys}"),
            Self::Tasks(workers, claims) => write!(f, "{}", tasks::name(*workers, *claims)),
            Self::Wake => write!(f, "task wake"),
            Self::Idle => write!(f, "idle"),
        }
    }
}
