//! `bench queue`: how fast a server that speaks Queen's protocol takes messages, gives them out,
//! and wakes the consumers that wait for them.
//!
//! The program is the same for every server, and every phase has queues of its own.

mod args;
mod drain;
mod fan_out;
mod idle;
mod partitions;
mod push;
mod push_bodies;
mod responses;
mod wake;

use anyhow::Context;
use serde_json::json;

use args::PhaseName;
pub use args::QueueArgs;

use crate::args::StoreKind;
use crate::report::Settings;
use crate::server::Server;
use crate::server_process::ServerProcess;
use crate::setup::{Setup, WAKELINE_POSTGRES};
use crate::suite::{Benchmark, Phases};
use crate::target::{Goal, Goals};
use crate::units::{millis, show_duration};

const QUEEN: &str = "Queen";

impl Benchmark for QueueArgs {
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
        let starts = |kind| self.url.is_none() && (self.side_by_side || self.store == kind);
        let postgres = starts(StoreKind::Postgres);
        let mut setup = Setup::new(postgres)?;
        if let Some(url) = &self.url {
            let mut server = Server::at(url, self.token.clone()).await?;
            server.postgres.clone_from(&self.postgres);
            setup.contestants.push(server);
            return Ok(setup);
        }
        if self.side_by_side {
            let program = self.queen_bin.as_deref().context("--queen-bin")?;
            let (database, url) = setup.databases.make("queen")?;
            eprintln!("starting Queen");
            let process = ServerProcess::queen(program, database, "queen")?;
            setup.add(QUEEN, process, Some(url)).await?;
        }
        let program = self.wakeline_bin.as_deref();
        let sqlite = starts(StoreKind::Sqlite);
        setup.add_wakeline(program, postgres, sqlite).await?;
        Ok(setup)
    }

    fn phases(&self, phases: &mut Phases<'_, Self>) {
        for &batch in &self.batches {
            phases.add(
                PhaseName::Push,
                format!("push, batch {batch}"),
                move |server, args| Box::pin(push::measure(server, args, batch)),
            );
        }
        for &batch in &self.batches {
            phases.add(
                PhaseName::Drain,
                format!("drain, batch {batch}"),
                move |server, args| Box::pin(drain::measure(server, args, batch)),
            );
        }
        phases.add(PhaseName::Wake, "wake", |server, args| {
            Box::pin(wake::measure(server, args))
        });
        phases.add(PhaseName::Idle, "idle", |server, args| {
            Box::pin(idle::measure(server, args))
        });
        phases.add(PhaseName::Partitions, "partitions", |server, args| {
            Box::pin(partitions::measure(server, args))
        });
        phases.add(PhaseName::FanOut, "fan-out", |server, args| {
            Box::pin(fan_out::measure(server, args))
        });
    }

    fn settings(&self, _: &Setup<Server>) -> anyhow::Result<Settings> {
        let ids = match self.transaction_ids {
            true => " with transactionIds",
            false => "",
        };
        let text = format!(
            "{} connections, {} partitions, {}-byte payloads{ids}, {} for each phase",
            self.connections,
            self.partitions,
            self.payload,
            show_duration(self.seconds)
        );
        let json = json!({
            "connections": self.connections,
            "partitions": self.partitions,
            "payloadBytes": self.payload,
            "transactionIds": self.transaction_ids,
            "timeMs": millis(self.seconds),
        });
        Ok(Settings { text, json })
    }

    fn calibration_connections(&self) -> usize {
        self.connections
    }

    fn goals(&self) -> Goals {
        let goals = [
            ("push, batch 1", Goal::AtLeastTimes(8.0)),
            ("drain, batch 1", Goal::AtLeastTimes(20.0)),
            ("push, batch 100", Goal::Ahead),
            ("drain, batch 100", Goal::Ahead),
            ("wake p99, from push sent", Goal::AtMostTimes(1.0 / 3.0)),
            (idle::NAME, Goal::AtMost(1.0)),
        ];
        Goals {
            reference: QUEEN,
            ours: &[WAKELINE_POSTGRES],
            goals: goals.map(|(name, goal)| (name.to_owned(), goal)).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;
    use crate::comparison::tests::compare;
    use crate::figure::Unit;

    #[test]
    fn wakeline_on_postgres_is_judged_beside_queen() {
        let args: QueueArgs = parse("queue --transaction-ids");
        let figures: &[(&str, Unit, &[f64])] = &[
            (
                "push, batch 1",
                Unit::MESSAGES_PER_SECOND,
                &[2_000.0, 16_400.0],
            ),
            ("  push, batch 1, answer p99", Unit::MILLIS, &[30.5, 4.25]),
            (
                "drain, batch 1",
                Unit::MESSAGES_PER_SECOND,
                &[250.0, 4_500.0],
            ),
            ("drain, batch 100", Unit::MESSAGES_PER_SECOND, &[20_000.0]),
            ("wake p99, from push sent", Unit::MILLIS, &[24.0, 6.0]),
            (
                "idle, 100 waiters on 100 queues",
                Unit::STATEMENTS_PER_SECOND,
                &[4.4, 1.1],
            ),
        ];
        insta::assert_snapshot!(compare(&args, &[QUEEN, WAKELINE_POSTGRES], figures), @r"
        50 connections, 50 partitions, 100-byte payloads with transactionIds, 4.00 s for each phase

                                                                                  Queen         Wakeline, PostgreSQL
        push, batch 1                               messages/s                    2,000                16,400  8.20x
          answer p99                                ms                            30.50                  4.25  0.14x
        drain, batch 1                              messages/s                      250                 4,500  18.0x
        drain, batch 100                            messages/s                   20,000                     -
        wake p99, from push sent                    ms                            24.00                  6.00  0.25x
        idle, 100 waiters on 100 queues             statements/s                   4.40                  1.10  0.25x

        target  push, batch 1                              at least 8 times   measured   8.20 times   met
        target  drain, batch 1                            at least 20 times   measured  18.00 times   MISSED by 10 %
        target  drain, batch 100                                      ahead   measured            -   NOT MEASURED
        target  wake p99, from push sent                 at most 0.33 times   measured   0.25 times   met
        target  idle, 100 waiters on 100 queues      at most 1 statements/s   measured         1.10   MISSED by 10 %
        2 of 5 targets met
        ");
    }
}
