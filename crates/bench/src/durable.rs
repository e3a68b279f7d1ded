//! `bench durable`: providers of duroxide on one PostgreSQL, by the same workflows.
//!
//! Nothing here asks which provider it has, but for the one wait that only ours offers. Every phase
//! runs on one provider after the other, each with a runtime of its own that ends with the phase.

mod args;
mod contestant;
mod idle;
mod latency;
mod pick_up;
mod report;
mod targets;
mod throughput;
mod timers;
mod work;

use anyhow::bail;
use tracing_subscriber::EnvFilter;
use wakeline_testbed::{Postgres, psql};

pub use args::DurableArgs;
use args::PhaseName;
use contestant::Contestant;
pub use contestant::{Connecting, Peer};
use report::Report;
use work::Work;

use crate::figure::Figure;

const WAKELINE: &str = "wakeline-durable";
/// What the others are compared with.
const REFERENCE: &str = "duroxide-pg-opt";

/// Prints its report to standard output. Fails after that when an orchestration did: a missed
/// target is a finding, a failed orchestration spoils the numbers.
pub(crate) async fn run(args: DurableArgs, peers: &[Peer]) -> anyhow::Result<()> {
    args.check(peers)?;
    log_to_standard_error();
    let report = measure(&args, peers).await?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    if let Some(trouble) = report.trouble() {
        bail!(trouble);
    }
    Ok(())
}

/// Before a runtime of duroxide does it, which would log to standard output, into the report.
fn log_to_standard_error() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    // There may be one already, of whoever called.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
}

async fn measure(args: &DurableArgs, peers: &[Peer]) -> anyhow::Result<Report> {
    eprintln!("starting PostgreSQL");
    let postgres = Postgres::start()?;
    let mut contestants = vec![Contestant::wakeline(&postgres).await?];
    for peer in peers.iter().filter(|peer| args.wants_peer(peer)) {
        contestants.push(Contestant::peer(peer, &postgres).await?);
    }
    let names: Vec<_> = contestants.iter().map(|one| one.name).collect();
    let version = psql(&postgres.url(), "SHOW server_version")?;
    let mut report = Report::new(args, &names, version, !peers.is_empty());
    for phase in Phase::ALL
        .into_iter()
        .filter(|phase| args.wants(phase.name))
    {
        for (place, contestant) in contestants.iter().enumerate() {
            // So that none pays for what the one before it has left to be written.
            psql(&postgres.url(), "CHECKPOINT")?;
            eprintln!("{}: {}", phase.name, contestant.name);
            match phase.measure(contestant, args).await {
                Ok(figures) => report.add(place, figures),
                Err(error) => {
                    let error = error.context(format!("{} was given up", phase.name));
                    contestant.failures.add("phase", &format!("{error:#}"));
                }
            }
        }
    }
    report.finish(&contestants);
    Ok(report)
}

#[derive(Clone, Copy)]
struct Phase {
    name: PhaseName,
    /// Of each kind.
    dispatchers: usize,
}

impl Phase {
    /// In the order of the report.
    const ALL: [Self; 6] = [
        Self::of(PhaseName::Idle, 2),
        Self::of(PhaseName::Latency, 2),
        Self::of(PhaseName::PickUp, 2),
        Self::of(PhaseName::Timers, 2),
        Self::of(PhaseName::Stress, throughput::STRESS.dispatchers),
        Self::of(PhaseName::FanOut, throughput::FAN_OUT.dispatchers),
    ];

    const fn of(name: PhaseName, dispatchers: usize) -> Self {
        Self { name, dispatchers }
    }

    async fn measure(
        self,
        contestant: &Contestant,
        args: &DurableArgs,
    ) -> anyhow::Result<Vec<Figure>> {
        let mut work = Work::start(contestant, self.dispatchers).await;
        let figures = match self.name {
            PhaseName::Idle => idle::measure(contestant, &work, args).await,
            PhaseName::Latency => latency::measure(contestant, &mut work, args).await,
            PhaseName::PickUp => pick_up::measure(contestant, &mut work, args).await,
            PhaseName::Timers => timers::measure(contestant, &mut work, args).await,
            PhaseName::Stress => {
                throughput::measure(contestant, &work, args, throughput::STRESS).await
            }
            PhaseName::FanOut => {
                throughput::measure(contestant, &work, args, throughput::FAN_OUT).await
            }
        };
        // Also after a failure: it would fetch from under the next phase.
        work.stop().await;
        figures
    }
}
