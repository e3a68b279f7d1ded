//! The arguments of `bench durable`.

use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use super::measured_provider::PeerProvider;
use crate::args::{RunArgs, check_lists, check_times};
use crate::units::parse_duration;

/// Starts a program that has the other providers.
pub(super) const WITH_PEERS: &str = "cargo run --release --manifest-path peers/Cargo.toml";
/// More would measure the same for longer.
const MAX_COUNT: usize = 100_000;

#[derive(Debug, Clone, Args)]
pub struct DurableArgs {
    /// The other providers to measure in the same run, or `none` [default: all that this program
    /// has].
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub peers: Option<Vec<String>>,
    /// How long to watch a runtime that has nothing to do.
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub idle: Duration,
    /// How many workflows of one activity, and how many pick-ups, are timed one after another.
    #[arg(long, default_value_t = 200)]
    pub workflows: usize,
    /// How many timers of 200 to 2000 ms are timed.
    #[arg(long, default_value_t = 200)]
    pub timers: usize,
    /// How long each throughput is measured.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub seconds: Duration,
    /// How many orchestrations are in flight while throughput is measured.
    #[arg(long, default_value_t = 20)]
    pub in_flight: usize,
    #[command(flatten)]
    pub run: RunArgs<PhaseName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Statements and transactions per second of a runtime that has nothing to do.
    Idle,
    /// The time of a workflow of one activity, from its start to its end.
    Latency,
    /// The time from the end of an enqueue to the start of the work that was enqueued.
    PickUp,
    /// How late an orchestration goes on after its timer was due.
    Timers,
    /// Orchestrations per second with 5 activities of 10 ms each, on 2 and 2 dispatchers.
    Stress,
    /// Orchestrations per second with 5 activities without a delay, on 8 and 8 dispatchers.
    FanOut,
}

impl DurableArgs {
    pub(super) fn check(&self, peers: &[PeerProvider]) -> anyhow::Result<()> {
        check_lists(&[
            ("--workflows", &[self.workflows], MAX_COUNT),
            ("--timers", &[self.timers], MAX_COUNT),
            ("--in-flight", &[self.in_flight], 1_000),
        ])?;
        check_times(&[("--seconds", self.seconds), ("--idle", self.idle)])?;
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

    pub(super) fn wants_peer(&self, peer: &PeerProvider) -> bool {
        self.peers.is_none() || self.named().any(|name| name == peer.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    const PEER: PeerProvider = PeerProvider {
        name: "duroxide-pg",
        connect: |_| unreachable!("no test connects"),
    };

    fn refusal(line: &str, peers: &[PeerProvider]) -> String {
        let args: DurableArgs = parse(line);
        args.check(peers).unwrap_err().to_string()
    }

    #[test]
    fn arguments_that_would_fail_later_or_measure_nothing_are_refused() {
        insta::assert_snapshot!(refusal("durable --workflows 0", &[]), @"--workflows must be from 1 to 100000");
        insta::assert_snapshot!(refusal("durable --in-flight 1001", &[]), @"--in-flight must be from 1 to 1000");
        insta::assert_snapshot!(refusal("durable --idle 0s", &[]), @"--idle must be more than nothing");
    }

    #[test]
    fn a_peer_that_this_program_does_not_have_is_refused_with_the_way_to_get_it() {
        insta::assert_snapshot!(refusal("durable --peers duroxide-pg", &[]), @r#"no provider "duroxide-pg" is in this program: `cargo run --release --manifest-path peers/Cargo.toml` builds one with duroxide-pg and duroxide-pg-opt"#);
        insta::assert_snapshot!(refusal("durable --peers other", &[PEER]), @r#"no provider "other" is in this program, which has duroxide-pg"#);
    }

    #[test]
    fn peers_are_all_unless_some_or_none_are_named() {
        let wants = |line: &str| {
            let args: DurableArgs = parse(line);
            args.check(&[PEER]).unwrap();
            args.wants_peer(&PEER)
        };
        assert!(wants("durable"));
        assert!(wants("durable --peers duroxide-pg"));
        assert!(!wants("durable --peers none"));
    }
}
