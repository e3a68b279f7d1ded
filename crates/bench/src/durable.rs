//! `bench durable`: providers of duroxide on one PostgreSQL, by the same workflows.
//!
//! The phases treat all providers alike, but for the one wait that only ours offers. Each phase has
//! a runtime of its own that ends with the phase.

mod args;
mod idle;
mod latency;
mod measured_provider;
mod pick_up;
mod throughput;
mod timers;
mod workload;

use serde_json::json;
use tracing_subscriber::EnvFilter;
use wakeline_testbed::psql;

pub use args::DurableArgs;
use args::{PhaseName, WITH_PEERS};
use measured_provider::MeasuredProvider;
pub use measured_provider::{PeerProvider, ProviderFuture};
use workload::Workload;

use crate::comparison::Contestants;
use crate::failures::Failures;
use crate::figure::Figure;
use crate::report::Settings;
use crate::setup::Setup;
use crate::suite::{self, Benchmark, Contestant, Phases};
use crate::target::{Goal, Goals};
use crate::units::{millis, show_count, show_duration};

const WAKELINE: &str = "wakeline-durable";
const REFERENCE: &str = "duroxide-pg-opt";

pub(crate) async fn run(args: DurableArgs, peers: &[PeerProvider]) -> anyhow::Result<()> {
    log_to_standard_error();
    let peers = peers.to_vec();
    suite::run(DurableBenchmark { args, peers }).await
}

/// Before a runtime of duroxide does it, which would log to standard output, into the report.
fn log_to_standard_error() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("error"));
    // The calling program may have set up a log already.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
}

struct DurableBenchmark {
    args: DurableArgs,
    /// The other providers that this program has, measured or not.
    peers: Vec<PeerProvider>,
}

impl Contestant for MeasuredProvider {
    fn name(&self) -> &str {
        self.name
    }

    fn failures(&self) -> &Failures {
        &self.failures
    }
}

impl Benchmark for DurableBenchmark {
    type Contestant = MeasuredProvider;
    type PhaseName = PhaseName;

    fn json(&self) -> bool {
        self.args.run.json
    }

    fn only(&self) -> &[PhaseName] {
        &self.args.run.only
    }

    async fn prepare(&self) -> anyhow::Result<Setup<MeasuredProvider>> {
        self.args.check(&self.peers)?;
        let mut setup = Setup::new(true)?;
        let wakeline = MeasuredProvider::wakeline(&setup.databases).await?;
        setup.contestants.push(wakeline);
        for peer in self.peers.iter().filter(|peer| self.args.wants_peer(peer)) {
            let provider = MeasuredProvider::peer(peer, &setup.databases).await?;
            setup.contestants.push(provider);
        }
        Ok(setup)
    }

    fn phases(&self, phases: &mut Phases<'_, Self>) {
        for (name, label, dispatchers) in [
            (PhaseName::Idle, "idle", 2),
            (PhaseName::Latency, "latency", 2),
            (PhaseName::PickUp, "pick-up", 2),
            (PhaseName::Timers, "timers", 2),
            (PhaseName::Stress, "stress", throughput::STRESS.dispatchers),
            (
                PhaseName::FanOut,
                "fan-out",
                throughput::FAN_OUT.dispatchers,
            ),
        ] {
            phases.add(name, label, move |provider, benchmark| {
                Box::pin(measure(provider, &benchmark.args, name, dispatchers))
            });
        }
    }

    fn settings(&self, setup: &Setup<MeasuredProvider>) -> anyhow::Result<Settings> {
        let url = setup.databases.postgres()?.url();
        Ok(self.settings_on(&psql(&url, "SHOW server_version")?))
    }

    fn goals(&self) -> Goals {
        let third = Goal::AtMostTimes(1.0 / 3.0);
        let goals = [
            ("idle", Goal::AtMost(0.1)),
            ("one activity, to its last turn, p50", third),
            ("one activity, as a polling client sees it, p50", third),
            ("  timer lateness, p99", Goal::AtMost(10.0)),
            ("stress", Goal::AtLeastTimes(3.0)),
            ("fan-out", Goal::AtLeastTimes(3.0)),
            ("stress, per orchestration", Goal::AtMostTimes(0.5)),
            ("fan-out, per orchestration", Goal::AtMostTimes(0.5)),
        ];
        Goals {
            reference: REFERENCE,
            ours: &[WAKELINE],
            goals: goals.map(|(name, goal)| (name.to_owned(), goal)).into(),
        }
    }

    fn contestants(&self, names: Vec<String>) -> Contestants {
        Contestants::Providers(names)
    }

    fn note(&self) -> Option<String> {
        let note = || format!("beside duroxide-pg and duroxide-pg-opt: {WITH_PEERS}");
        self.peers.is_empty().then(note)
    }
}

impl DurableBenchmark {
    /// On this version of PostgreSQL.
    fn settings_on(&self, postgres: &str) -> Settings {
        let args = &self.args;
        let text = format!(
            "PostgreSQL {postgres}; idle for {}, {} workflows, {} timers, {} in flight for {}",
            show_duration(args.idle),
            show_count(args.workflows),
            show_count(args.timers),
            show_count(args.in_flight),
            show_duration(args.seconds)
        );
        let json = json!({
            "postgres": postgres,
            "idleMs": millis(args.idle),
            "workflows": args.workflows,
            "timers": args.timers,
            "timeMs": millis(args.seconds),
            "inFlight": args.in_flight,
        });
        Settings { text, json }
    }
}

/// With so many dispatchers of each kind.
async fn measure(
    provider: &MeasuredProvider,
    args: &DurableArgs,
    phase: PhaseName,
    dispatchers: usize,
) -> anyhow::Result<Vec<Figure>> {
    let mut workload = Workload::start(provider, dispatchers).await;
    let figures = match phase {
        PhaseName::Idle => idle::measure(provider, &workload, args).await,
        PhaseName::Latency => latency::measure(provider, &mut workload, args).await,
        PhaseName::PickUp => pick_up::measure(provider, &mut workload, args).await,
        PhaseName::Timers => timers::measure(provider, &mut workload, args).await,
        PhaseName::Stress => {
            throughput::measure(provider, &workload, args, throughput::STRESS).await
        }
        PhaseName::FanOut => {
            throughput::measure(provider, &workload, args, throughput::FAN_OUT).await
        }
    };
    // Also after a failure: the runtime would take work from the next phase.
    workload.stop().await;
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;
    use crate::comparison::Comparison;
    use crate::comparison::tests::{empty, finished};
    use crate::figure::Unit;
    use crate::report::Report;

    fn benchmark() -> DurableBenchmark {
        DurableBenchmark {
            args: parse("durable"),
            peers: Vec::new(),
        }
    }

    fn compare(names: &[&str]) -> Comparison {
        let figures: &[(&str, Unit, &[f64])] = &[
            ("idle", Unit::STATEMENTS_PER_SECOND, &[0.05, 0.3, 39.6]),
            (
                "  idle, transactions",
                Unit::TRANSACTIONS_PER_SECOND,
                &[0.1, 1.5, 40.0],
            ),
            (
                "one activity, to its last turn, p50",
                Unit::MILLIS,
                &[8.0, 30.0, 150.0],
            ),
            (
                "one activity, as a woken caller sees it, p50",
                Unit::MILLIS,
                &[9.0],
            ),
            ("timer lateness, p50", Unit::MILLIS, &[2.5, 104.0, 80.0]),
            ("  timer lateness, p99", Unit::MILLIS, &[12.5, 134.0, 105.0]),
            (
                "stress",
                Unit::ORCHESTRATIONS_PER_SECOND,
                &[60.0, 24.0, 20.0],
            ),
            (
                "stress, per orchestration",
                Unit::STATEMENTS,
                &[11.0, 44.0, 48.0],
            ),
        ];
        finished(empty(&benchmark(), names), figures)
    }

    #[test]
    fn providers_are_compared_and_ours_is_judged_by_the_reference() {
        insta::assert_snapshot!(compare(&[WAKELINE, REFERENCE, "duroxide-pg"]), @r"
                                                                                    wakeline-durable       duroxide-pg-opt                  duroxide-pg
        idle                                          statements/s                       0.05  0.17x                  0.30                 39.60 132.0x
          transactions                                transactions/s                     0.10 0.067x                  1.50                 40.00  26.7x
        one activity, to its last turn, p50           ms                                 8.00  0.27x                 30.00                150.00  5.00x
        one activity, as a woken caller sees it, p50  ms                                 9.00                            -                     -
        timer lateness, p50                           ms                                 2.50 0.024x                104.00                 80.00  0.77x
          p99                                         ms                                12.50 0.093x                134.00                105.00  0.78x
        stress                                        orchestrations/s                   60.0  2.50x                  24.0                  20.0  0.83x
        stress, per orchestration                     statements                         11.0  0.25x                  44.0                  48.0  1.09x

        target  idle                                  at most 0.1 statements/s   measured         0.05   met
        target  one activity, to its last turn, p50         at most 0.33 times   measured   0.27 times   met
        target  timer lateness, p99                              at most 10 ms   measured        12.50   MISSED by 25 %
        target  stress                                        at least 3 times   measured   2.50 times   MISSED by 17 %
        target  stress, per orchestration, statements       at most 0.50 times   measured   0.25 times   met
        3 of 5 targets met
        ");
    }

    #[test]
    fn a_single_contestant_is_judged_by_the_absolute_goals_only() {
        let benchmark = benchmark();
        let report = Report {
            settings: benchmark.settings_on("15.1"),
            comparison: compare(&[WAKELINE]),
            note: benchmark.note(),
        };
        insta::assert_snapshot!(report, @r"
        PostgreSQL 15.1; idle for 60.0 s, 200 workflows, 200 timers, 20 in flight for 10.0 s

                                                                             wakeline-durable
        idle                                          statements/s                       0.05
          transactions                                transactions/s                     0.10
        one activity, to its last turn, p50           ms                                 8.00
        one activity, as a woken caller sees it, p50  ms                                 9.00
        timer lateness, p50                           ms                                 2.50
          p99                                         ms                                12.50
        stress                                        orchestrations/s                   60.0
        stress, per orchestration                     statements                         11.0

        target  idle                               at most 0.1 statements/s   measured         0.05   met
        target  timer lateness, p99                           at most 10 ms   measured        12.50   MISSED by 25 %
        1 of 2 targets met

        beside duroxide-pg and duroxide-pg-opt: cargo run --release --manifest-path peers/Cargo.toml
        ");
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["providers"], serde_json::json!([WAKELINE]));
    }

    #[test]
    fn failures_are_orchestrations() {
        let mut comparison = compare(&[WAKELINE]);
        let failures = Failures::default();
        failures.add("stress", &"it broke");
        comparison.finish(vec![failures.summary()]);
        insta::assert_snapshot!(comparison.trouble().unwrap(), @"1 orchestrations failed at wakeline-durable; the first: stress: it broke");
    }
}
