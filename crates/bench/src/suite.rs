//! The harness of the benchmarks: every phase runs on one contestant after the other, so that a
//! machine that gets slower on the way does so for all of them, and one report has a row for each
//! figure.

use futures_util::future::LocalBoxFuture;

use crate::calibrate;
use crate::comparison::{Comparison, Contestants};
use crate::failures::Failures;
use crate::figure::Figure;
use crate::report::{self, Report, Settings};
use crate::server::Server;
use crate::setup::Setup;
use crate::target::Goals;

/// What is measured: a server, a provider of duroxide, or a way to commit.
pub(crate) trait Contestant {
    fn name(&self) -> &str;
    fn failures(&self) -> &Failures;

    /// `None` for what is measured without one.
    fn server(&self) -> Option<&Server> {
        None
    }
}

/// A benchmark, with the arguments of its command.
pub(crate) trait Benchmark: Sized + 'static {
    type Contestant: Contestant;
    /// The phases as `--only` names them.
    type PhaseName: PartialEq + 'static;

    /// Whether the report is printed as JSON.
    fn json(&self) -> bool;
    /// Checks the arguments before it starts anything.
    async fn prepare(&self) -> anyhow::Result<Setup<Self::Contestant>>;
    /// In the order of the report.
    fn phases(&self, phases: &mut Phases<'_, Self>);
    fn settings(&self, setup: &Setup<Self::Contestant>) -> anyhow::Result<Settings>;
    fn goals(&self) -> Goals;

    /// The phases to run; none for all.
    fn only(&self) -> &[Self::PhaseName] {
        &[]
    }

    /// How many connections show before and after all phases how fast a server can be.
    fn calibration_connections(&self) -> usize {
        16
    }

    /// The kind of the named contestants.
    fn contestants(&self, names: Vec<String>) -> Contestants {
        Contestants::Servers(names)
    }

    /// Removes what must not be left after the phases, also when one of them has failed.
    async fn clean_up(&self, _: &Setup<Self::Contestant>) -> anyhow::Result<()> {
        Ok(())
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
    let measured = measure(&benchmark).await?;
    report::print(&measured, benchmark.json(), measured.comparison.trouble())
}

pub(crate) async fn measure<B: Benchmark>(benchmark: &B) -> anyhow::Result<Report> {
    let mut setup = benchmark.prepare().await?;
    let settings = benchmark.settings(&setup)?;
    let names = setup.contestants.iter().map(|one| one.name().to_owned());
    let contestants = benchmark.contestants(names.collect());
    let mut comparison = Comparison::new(contestants, benchmark.goals());
    let mut phases = Phases {
        only: benchmark.only(),
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
    benchmark.clean_up(&setup).await?;
    Ok(Report {
        settings,
        comparison,
        note: benchmark.note(),
    })
}
