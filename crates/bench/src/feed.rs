//! `bench feed`: how fast a server that speaks Jinaga's protocol saves facts, streams the facts that
//! are there, and brings a new fact to the streams that it concerns.
//!
//! The program is the same for every server, and every phase has facts of its own.

mod args;
mod backfill;
mod facts;
mod live;
mod save;
mod stream;

use serde_json::json;

pub use args::FeedArgs;
use args::PhaseName;
use live::StreamRoots;

use crate::args::ContestantName;
use crate::peer::Peer;
use crate::report::Settings;
use crate::server::Server;
use crate::setup::{Setup, WAKELINE_POSTGRES, WAKELINE_SQLITE};
use crate::suite::{Benchmark, Phases};
use crate::target::{Goal, Goals};
use crate::units::{millis, show_count, show_duration};

const UPSTREAM: &str = "jinaga-server";
const GOAL_TUPLES: usize = 10_000;
const GOAL_STREAMS: usize = 1_000;

impl Benchmark for FeedArgs {
    type Contestant = Server;
    type PhaseName = PhaseName;

    fn json(&self) -> bool {
        self.run.json
    }

    fn only(&self) -> &[PhaseName] {
        &self.run.only
    }

    async fn prepare(&self) -> anyhow::Result<Setup<Server>> {
        self.check()?;
        // From npm.
        let peer = Peer {
            name: UPSTREAM,
            interpreter: "node",
            directory: self.peer.clone(),
            ready_text: "running on",
            needs_redis: false,
        };
        if self.servers.starts(ContestantName::Upstream) {
            peer.prepare()?;
        }
        Setup::of(&self.servers, &peer).await
    }

    fn phases(&self, phases: &mut Phases<'_, Self>) {
        for &connections in &self.connections {
            phases.add(
                PhaseName::Save,
                save::name(connections),
                move |server, args| Box::pin(save::single(server, args, connections)),
            );
        }
        phases.add(PhaseName::Save, save::GRAPHS, |server, args| {
            Box::pin(save::graphs(server, args))
        });
        phases.add(PhaseName::Backfill, "backfill", |server, args| {
            Box::pin(backfill::measure(server, args))
        });
        for roots in [StreamRoots::Distinct, StreamRoots::Shared] {
            for &count in &self.streams {
                phases.add(
                    PhaseName::Live,
                    live::name(roots, count),
                    move |server, args| Box::pin(live::measure(server, args, roots, count)),
                );
            }
        }
    }

    fn settings(&self, _: &Setup<Server>) -> anyhow::Result<Settings> {
        let text = format!(
            "saves for {}, up to {} of them while streams are open, idle for {}; live is from a save \
             sent to its frame",
            show_duration(self.seconds),
            show_count(self.saves),
            show_duration(self.idle),
        );
        let json = json!({
            "savingMs": millis(self.seconds),
            "liveSaves": self.saves,
            "idleMs": millis(self.idle),
        });
        Ok(Settings { text, json })
    }

    fn goals(&self) -> Goals {
        let live = |roots| (live::p99_name(roots, GOAL_STREAMS), Goal::AtMostTimes(0.1));
        let single = |connections| (save::name(connections), Goal::AtLeastTimes(5.0));
        let mut goals = vec![
            (backfill::name(GOAL_TUPLES), Goal::AtLeastTimes(10.0)),
            live(StreamRoots::Distinct),
            live(StreamRoots::Shared),
            (save::GRAPHS.to_owned(), Goal::AtLeastTimes(5.0)),
        ];
        goals.extend([1, 16, 64].map(single));
        Goals {
            reference: UPSTREAM,
            ours: &[WAKELINE_POSTGRES, WAKELINE_SQLITE],
            goals,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;
    use crate::comparison::tests::compare;
    use crate::figure::Unit;

    const FIGURES: [(&str, Unit, &[f64]); 4] = [
        (
            "saves of one fact, 16 connections",
            Unit::SAVES_PER_SECOND,
            &[250.0, 5_000.0, 1_000.0],
        ),
        (
            "backfill of 10,000 tuples",
            Unit::TUPLES_PER_SECOND,
            &[4_000.0, 80_000.0, 20_000.0],
        ),
        (
            "live, 1,000 streams, one of them is concerned p99",
            Unit::MILLIS,
            &[200.0, 6.0, 30.0],
        ),
        (
            "  live, 1,000 streams, one of them is concerned, statements while idle",
            Unit::STATEMENTS_PER_MINUTE,
            &[0.0, 16.0, 4.0],
        ),
    ];

    #[test]
    fn each_wakeline_is_judged_beside_upstream() {
        let servers = [UPSTREAM, WAKELINE_POSTGRES, WAKELINE_SQLITE];
        let args: FeedArgs = parse("feed");
        insta::assert_snapshot!(compare(&args, &servers, &FIGURES), @r"
        saves for 5.00 s, up to 200 of them while streams are open, idle for 30.0 s; live is from a save sent to its frame

                                                                                   jinaga-server         Wakeline, PostgreSQL             Wakeline, SQLite
        saves of one fact, 16 connections                  saves/s                           250                 5,000  20.0x                 1,000  4.00x
        backfill of 10,000 tuples                          tuples/s                        4,000                80,000  20.0x                20,000  5.00x
        live, 1,000 streams, one of them is concerned p99  ms                             200.00                  6.00 0.030x                 30.00  0.15x
          statements while idle                            statements/min                    0.0                  16.0                          4.0

        target  Wakeline, PostgreSQL: backfill of 10,000 tuples                                at least 10 times   measured  20.00 times   met
        target  Wakeline, PostgreSQL: live, 1,000 streams, one of them is concerned p99       at most 0.10 times   measured   0.03 times   met
        target  Wakeline, PostgreSQL: saves of one fact, 16 connections                         at least 5 times   measured  20.00 times   met
        target  Wakeline, SQLite: backfill of 10,000 tuples                                    at least 10 times   measured   5.00 times   MISSED by 50 %
        target  Wakeline, SQLite: live, 1,000 streams, one of them is concerned p99           at most 0.10 times   measured   0.15 times   MISSED by 50 %
        target  Wakeline, SQLite: saves of one fact, 16 connections                             at least 5 times   measured   4.00 times   MISSED by 20 %
        3 of 6 targets met
        ");
    }

    #[test]
    fn a_single_contestant_is_not_judged_by_ratios() {
        let report = compare(&parse::<FeedArgs>("feed"), &[WAKELINE_SQLITE], &FIGURES);
        assert!(!report.contains("target"));
    }
}
