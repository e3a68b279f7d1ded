//! What `bench durable` can be asked for.

use std::fmt;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use super::contestant::Peer;
use crate::units::parse_duration;

/// How a program with the peers in it is started.
pub(super) const WITH_PEERS: &str = "cargo run --release --manifest-path peers/Cargo.toml";
/// More would be no other measurement, only a longer one.
const MOST: usize = 100_000;

#[derive(Debug, Clone, Args)]
pub struct DurableArgs {
    /// Which other providers to measure in the same run; `none` for none [default: all that this
    /// program has].
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub peers: Option<Vec<String>>,
    /// Only these phases.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<PhaseName>,

    /// How long to watch a runtime that has nothing to do.
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub idle: Duration,
    /// How many workflows of one activity, and how many pick-ups, are timed one after another.
    #[arg(long, default_value_t = 200)]
    pub workflows: usize,
    /// How many timers of 200 to 2000 ms.
    #[arg(long, default_value_t = 200)]
    pub timers: usize,
    /// How long each throughput is measured.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub seconds: Duration,
    /// How many orchestrations are in flight while throughput is measured.
    #[arg(long, default_value_t = 20)]
    pub in_flight: usize,

    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Statements and transactions per second of a runtime that has nothing to do.
    Idle,
    /// A workflow of one activity, from its start to its end.
    Latency,
    /// From the end of an enqueue to the start of what was enqueued.
    PickUp,
    /// How late an orchestration goes on after its timer was due.
    Timers,
    /// Fan-out of 5 activities of 10 ms, 2 and 2 dispatchers.
    Stress,
    /// Fan-out of 5 activities without a delay, 8 and 8 dispatchers.
    FanOut,
}

impl fmt::Display for PhaseName {
    /// As it is written after `--only`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no phase is hidden");
        f.write_str(value.get_name())
    }
}

impl DurableArgs {
    /// Everything that can be known to fail before PostgreSQL is started.
    pub(super) fn check(&self, peers: &[Peer]) -> anyhow::Result<()> {
        for (flag, number, most) in [
            ("--workflows", self.workflows, MOST),
            ("--timers", self.timers, MOST),
            ("--in-flight", self.in_flight, 1_000),
        ] {
            ensure!(
                (1..=most).contains(&number),
                "{flag} must be from 1 to {most}"
            );
        }
        for (flag, time) in [("--seconds", self.seconds), ("--idle", self.idle)] {
            ensure!(!time.is_zero(), "{flag} must be more than nothing");
        }
        for name in self.named() {
            ensure!(
                peers.iter().any(|peer| peer.name == name),
                "no provider {name:?} is in this program{}",
                match peers {
                    [] =>
                        format!(": `{WITH_PEERS}` builds one with duroxide-pg and duroxide-pg-opt"),
                    _ => {
                        let known: Vec<_> = peers.iter().map(|peer| peer.name).collect();
                        format!(", which has {}", known.join(" and "))
                    }
                }
            );
        }
        Ok(())
    }

    fn named(&self) -> impl Iterator<Item = &str> {
        let names = self.peers.iter().flatten().map(String::as_str);
        names.filter(|&name| name != "none")
    }

    pub(super) fn wants_peer(&self, peer: &Peer) -> bool {
        self.peers.is_none() || self.named().any(|name| name == peer.name)
    }

    pub(super) fn wants(&self, phase: PhaseName) -> bool {
        self.only.is_empty() || self.only.contains(&phase)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: DurableArgs,
    }

    const PEER: Peer = Peer {
        name: "duroxide-pg",
        connect: |_| unreachable!("no test connects"),
    };

    fn refusal(line: &str, peers: &[Peer]) -> String {
        let args = Cli::parse_from(line.split(' ')).args;
        args.check(peers).unwrap_err().to_string()
    }

    #[test]
    fn what_would_fail_later_or_measure_nothing_is_refused() {
        insta::assert_snapshot!(refusal("durable --workflows 0", &[]), @"--workflows must be from 1 to 100000");
        insta::assert_snapshot!(refusal("durable --in-flight 1001", &[]), @"--in-flight must be from 1 to 1000");
        insta::assert_snapshot!(refusal("durable --idle 0s", &[]), @"--idle must be more than nothing");
    }

    #[test]
    fn a_peer_that_is_not_there_is_refused_with_the_way_to_get_it() {
        insta::assert_snapshot!(refusal("durable --peers duroxide-pg", &[]), @r#"no provider "duroxide-pg" is in this program: `cargo run --release --manifest-path peers/Cargo.toml` builds one with duroxide-pg and duroxide-pg-opt"#);
        insta::assert_snapshot!(refusal("durable --peers other", &[PEER]), @r#"no provider "other" is in this program, which has duroxide-pg"#);
    }

    #[test]
    fn peers_are_all_unless_some_or_none_are_named() {
        let wants = |line: &str| {
            let args = Cli::parse_from(line.split(' ')).args;
            args.check(&[PEER]).unwrap();
            args.wants_peer(&PEER)
        };
        assert!(wants("durable"));
        assert!(wants("durable --peers duroxide-pg"));
        assert!(!wants("durable --peers none"));
    }
}
