//! `bench jobs`: how fast a server that speaks zndraw-joblib's protocol reads from providers, holds
//! reads, and brings tasks to their end.
//!
//! The program is the same for every server, and every phase has rooms of its own.

mod args;
mod cold;
mod held;
mod idle;
mod job;
mod provider;
mod server;
mod tasks;
mod wake;
mod warm;
mod worker;

use serde_json::json;

pub use args::JobsArgs;
use args::PhaseName;
use held::{ReadKeys, memory_name};
use server::JobsServer;
use tasks::ClaimMode;

use crate::args::ContestantName;
use crate::failures::Failures;
use crate::peer::Peer;
use crate::report::Settings;
use crate::server::Server;
use crate::setup::{Setup, WAKELINE_POSTGRES, WAKELINE_SQLITE};
use crate::suite::{Benchmark, Contestant, Phases};
use crate::target::{Goal, Goals};
use crate::units::{millis, show_count, show_duration};

const UPSTREAM: &str = "zndraw-joblib";
/// At which zndraw-joblib is no slower than with fewer.
const GOAL_CONNECTIONS: usize = 64;
const GOAL_BYTES: usize = 200;

impl Contestant for JobsServer {
    fn name(&self) -> &str {
        &self.server.name
    }

    fn failures(&self) -> &Failures {
        &self.server.failures
    }

    fn server(&self) -> Option<&Server> {
        Some(&self.server)
    }
}

impl Benchmark for JobsArgs {
    type Contestant = JobsServer;
    type PhaseName = PhaseName;

    fn json(&self) -> bool {
        self.run.json
    }

    fn only(&self) -> &[PhaseName] {
        &self.run.only
    }

    async fn prepare(&self) -> anyhow::Result<Setup<JobsServer>> {
        self.check()?;
        let peer = self.peer();
        if self.run.wants(&PhaseName::Cold) || self.servers.starts(ContestantName::Upstream) {
            peer.prepare()?;
        }
        let setup = Setup::of(&self.servers, &peer).await?;
        let mut contestants = Vec::new();
        for server in setup.contestants {
            contestants.push(JobsServer::sign_in_to(server).await?);
        }
        Ok(Setup {
            contestants,
            databases: setup.databases,
            redis: setup.redis,
        })
    }

    fn phases(&self, phases: &mut Phases<'_, Self>) {
        phases.add(PhaseName::Cold, "cold reads", |host, args| {
            Box::pin(cold::measure(&host.server, args))
        });
        for &bytes in &self.bodies {
            phases.add(
                PhaseName::Warm,
                format!("warm reads, {bytes} bytes"),
                move |host, args| Box::pin(warm::measure(&host.server, args, bytes)),
            );
        }
        for keys in [ReadKeys::Distinct, ReadKeys::Identical] {
            phases.add(
                PhaseName::Held,
                format!("held reads, {keys}"),
                move |host, args| Box::pin(held::measure(host, args, keys)),
            );
        }
        for mode in [ClaimMode::Polling, ClaimMode::Held] {
            for &workers in &self.workers {
                phases.add(
                    PhaseName::Tasks,
                    tasks::name(workers, mode),
                    move |host, args| Box::pin(tasks::measure(host, args, workers, mode)),
                );
            }
        }
        phases.add(PhaseName::Wake, "task wake", |host, args| {
            Box::pin(wake::measure(&host.server, args))
        });
        phases.add(PhaseName::Idle, "idle", |host, args| {
            Box::pin(idle::measure(host, args))
        });
    }

    fn settings(&self, _: &Setup<JobsServer>) -> anyhow::Result<Settings> {
        let text = format!(
            "{} cold reads, {} rounds of {} of warm reads, {} tasks or as many as fill {}, {} task \
             wakes, idle for {}",
            show_count(self.cold),
            self.rounds,
            show_duration(self.seconds),
            show_count(self.tasks),
            show_duration(self.seconds * self.rounds as u32),
            show_count(self.wakes),
            show_duration(self.idle),
        );
        let json = json!({
            "coldReads": self.cold,
            "roundMs": millis(self.seconds),
            "rounds": self.rounds,
            "leastTasks": self.tasks,
            "wakes": self.wakes,
            "idleMs": millis(self.idle),
        });
        Ok(Settings { text, json })
    }

    fn goals(&self) -> Goals {
        let mut goals = vec![
            (
                warm::name(GOAL_BYTES, GOAL_CONNECTIONS),
                Goal::AtLeastTimes(200.0),
            ),
            ("cold read, p50".to_owned(), Goal::AtMostTimes(1.0 / 3.0)),
        ];
        let tasks = |workers| {
            let name = tasks::name(workers, ClaimMode::Polling);
            (name, Goal::AtLeastTimes(30.0))
        };
        goals.extend([1, 4, 16].map(tasks));
        goals.push((
            "task wake p99, from change sent".to_owned(),
            Goal::AtMostTimes(1.0 / 50.0),
        ));
        let keys = [ReadKeys::Distinct, ReadKeys::Identical];
        goals.extend(keys.map(|keys| (memory_name(keys), Goal::AtMost(14_000.0))));
        Goals {
            reference: UPSTREAM,
            ours: &[WAKELINE_POSTGRES, WAKELINE_SQLITE],
            goals,
        }
    }
}

impl JobsArgs {
    /// zndraw-joblib from PyPI.
    fn peer(&self) -> Peer {
        Peer {
            name: UPSTREAM,
            interpreter: "python3",
            directory: self.peer.clone(),
            ready_text: "Uvicorn running on",
            needs_redis: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;
    use crate::comparison::tests::compare;
    use crate::figure::Unit;

    const FIGURES: [(&str, Unit, &[f64]); 6] = [
        ("cold read, p50", Unit::MILLIS, &[27.0, 8.0, 10.0]),
        (
            "warm read of 200 bytes, 64 connections",
            Unit::READS_PER_SECOND,
            &[110.0, 33_000.0, 11_000.0],
        ),
        (
            "held reads, distinct keys, memory of each",
            Unit::BYTES,
            &[40_000.0, 12_000.0, 15_400.0],
        ),
        (
            "tasks, 4 workers",
            Unit::TASKS_PER_SECOND,
            &[14.2, 1_420.0, 426.0],
        ),
        (
            "task wake p99, from change sent",
            Unit::MILLIS,
            &[1_000.0, 5.0, 25.0],
        ),
        ("held reads, one key, memory of each", Unit::BYTES, &[9e3]),
    ];

    #[test]
    fn each_wakeline_is_judged_beside_upstream() {
        let servers = [UPSTREAM, WAKELINE_POSTGRES, WAKELINE_SQLITE];
        let args: JobsArgs = parse("jobs");
        insta::assert_snapshot!(compare(&args, &servers, &FIGURES), @r"
        200 cold reads, 3 rounds of 2.00 s of warm reads, 400 tasks or as many as fill 6.00 s, 100 task wakes, idle for 10.0 s

                                                                          zndraw-joblib         Wakeline, PostgreSQL             Wakeline, SQLite
        cold read, p50                              ms                            27.00                  8.00  0.30x                 10.00  0.37x
        warm read of 200 bytes, 64 connections      reads/s                         110                33,000 300.0x                11,000 100.0x
        held reads, distinct keys, memory of each   bytes                        40,000                12,000  0.30x                15,400  0.39x
        tasks, 4 workers                            tasks/s                        14.2                1420.0 100.0x                 426.0  30.0x
        task wake p99, from change sent             ms                          1000.00                  5.00 0.005x                 25.00 0.025x
        held reads, one key, memory of each         bytes                         9,000                     -                            -

        target  Wakeline, PostgreSQL: warm read of 200 bytes, 64 connections          at least 200 times   measured 300.00 times   met
        target  Wakeline, PostgreSQL: cold read, p50                                  at most 0.33 times   measured   0.30 times   met
        target  Wakeline, PostgreSQL: tasks, 4 workers                                 at least 30 times   measured 100.00 times   met
        target  Wakeline, PostgreSQL: task wake p99, from change sent                 at most 0.02 times   measured   0.01 times   met
        target  Wakeline, PostgreSQL: held reads, distinct keys, memory of each      at most 14000 bytes   measured     12000.00   met
        target  Wakeline, PostgreSQL: held reads, one key, memory of each            at most 14000 bytes   measured            -   NOT MEASURED
        target  Wakeline, SQLite: warm read of 200 bytes, 64 connections              at least 200 times   measured 100.00 times   MISSED by 50 %
        target  Wakeline, SQLite: cold read, p50                                      at most 0.33 times   measured   0.37 times   MISSED by 11 %
        target  Wakeline, SQLite: tasks, 4 workers                                     at least 30 times   measured  30.00 times   met
        target  Wakeline, SQLite: task wake p99, from change sent                     at most 0.02 times   measured   0.03 times   MISSED by 25 %
        target  Wakeline, SQLite: held reads, distinct keys, memory of each          at most 14000 bytes   measured     15400.00   MISSED by 10 %
        target  Wakeline, SQLite: held reads, one key, memory of each                at most 14000 bytes   measured            -   NOT MEASURED
        6 of 12 targets met
        ");
    }
}
