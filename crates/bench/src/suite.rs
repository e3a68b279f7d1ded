//! The harness of the benchmarks that compare: every phase runs on one contestant after the other,
//! so that a machine that gets slower on the way does so for all of them, and one report has a row
//! for each figure.

use clap::ValueEnum;
use futures_util::future::LocalBoxFuture;

use crate::args::RunArgs;
use crate::calibrate;
use crate::comparison::Comparison;
use crate::failures::Failures;
use crate::figure::Figure;
use crate::report::{self, Report, Settings};
use crate::server::Server;
use crate::setup::{Databases, Setup};
use crate::target::Goals;

/// What is measured: a server, or a provider of duroxide.
pub(crate) trait Contestant {
    fn name(&self) -> &str;
    fn failures(&self) -> &Failures;

    /// A provider has none.
    fn server(&self) -> Option<&Server> {
        None
    }
}

/// A benchmark, with the arguments of its command.
pub(crate) trait Benchmark: Sized + 'static {
    type Contestant: Contestant;
    /// The phases as `--only` names them.
    type PhaseName: ValueEnum + PartialEq + Send + Sync + 'static;

    /// Fails with everything that can be known before the first server is started.
    fn check(&self) -> anyhow::Result<()>;
    fn run_args(&self) -> &RunArgs<Self::PhaseName>;
    async fn prepare(&self) -> anyhow::Result<Setup<Self::Contestant>>;
    /// In the order of the report.
    fn phases(&self, phases: &mut Phases<'_, Self>);
    fn settings(&self, databases: &Databases) -> anyhow::Result<Settings>;
    fn goals() -> Goals;

    /// How many connections show before and after all phases how fast a server can be.
    fn calibration_connections(&self) -> usize {
        16
    }

    /// An empty report for these contestants.
    fn comparison(names: Vec<String>) -> Comparison {
        Comparison::of_servers(names, Self::goals())
    }

    /// The last line of a text report.
    fn note(&self) -> Option<String> {
        None
    }
}

type PhaseFuture<'a> = LocalBoxFuture<'a, anyhow::Result<Vec<Figure>>>;
type Measure<B> =
    Box<dyn for<'a> Fn(&'a mut <B as Benchmark>::Contestant, &'a B) -> PhaseFuture<'a>>;

/// The phases of a run: those that `--only` names, or all.
pub(crate) struct Phases<'a, B: Benchmark> {
    only: &'a [B::PhaseName],
    phases: Vec<(String, Measure<B>)>,
}

impl<B: Benchmark> Phases<'_, B> {
    /// `label` is shown while the phase runs.
    pub(crate) fn add(
        &mut self,
        name: B::PhaseName,
        label: impl Into<String>,
        measure: impl for<'a> Fn(&'a mut B::Contestant, &'a B) -> PhaseFuture<'a> + 'static,
    ) {
        if self.only.is_empty() || self.only.contains(&name) {
            self.phases.push((label.into(), Box::new(measure)));
        }
    }

    fn add_calibration(&mut self, when: &'static str) {
        let measure: Measure<B> = Box::new(move |contestant, benchmark| {
            Box::pin(async move {
                match contestant.server() {
                    Some(server) => {
                        let connections = benchmark.calibration_connections();
                        calibrate::measure(server, connections, when).await
                    }
                    None => Ok(Vec::new()),
                }
            })
        });
        self.phases.push((format!("calibration {when}"), measure));
    }
}

/// Runs the benchmark on one thread of its own: cheaper than many, and what the load costs is taken
/// from the server.
pub(crate) async fn run_on_one_thread(benchmark: impl Benchmark + Send) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(run(benchmark))
    })
    .await?
}

/// Prints the report to standard output. Fails after that when requests failed: a missed target is
/// a finding, a failed request spoils the numbers.
pub(crate) async fn run<B: Benchmark>(benchmark: B) -> anyhow::Result<()> {
    benchmark.check()?;
    let measured = measure(&benchmark).await?;
    report::print(
        &measured,
        benchmark.run_args().json,
        measured.comparison.trouble(),
    )
}

async fn measure<B: Benchmark>(benchmark: &B) -> anyhow::Result<Report> {
    let mut setup = benchmark.prepare().await?;
    let settings = benchmark.settings(&setup.databases)?;
    let names = setup.contestants.iter().map(|one| one.name().to_owned());
    let mut comparison = B::comparison(names.collect());
    let mut phases = Phases {
        only: &benchmark.run_args().only,
        phases: Vec::new(),
    };
    let has_servers = setup.contestants.iter().any(|one| one.server().is_some());
    if has_servers {
        phases.add_calibration("before");
    }
    benchmark.phases(&mut phases);
    if has_servers {
        phases.add_calibration("after");
    }
    for (label, measure) in phases.phases {
        for (column, contestant) in setup.contestants.iter_mut().enumerate() {
            // No contestant pays for what the one before it has left to be written.
            setup.databases.checkpoint()?;
            eprintln!("{label}: {}", contestant.name());
            match measure(contestant, benchmark).await {
                Ok(figures) => comparison.add(column, figures),
                Err(error) => {
                    let error = error.context(format!("{label} was given up"));
                    eprintln!("{error:#}");
                    contestant.failures().add_error("phase", &error);
                }
            }
        }
    }
    let failures = setup.contestants.iter().map(|one| one.failures().summary());
    comparison.finish(failures.collect());
    Ok(Report {
        settings,
        comparison,
        note: benchmark.note(),
    })
}
