//! The arguments of `bench hold`.

use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::args::{check_counts, check_times};
use crate::open_files;
use crate::units::{parse_bytes, parse_duration};

/// A local address has about 28,000 ports for outgoing connections to one server.
const MAX_HTTP1_WAITERS_PER_URL: usize = 28_000;

const HTTP2: &str = "use `--http 2`, which carries all waiters over a few connections";

#[derive(Debug, Clone, Args)]
pub struct HoldArgs {
    /// The server that holds the pops; repeat it to spread them over several nodes.
    #[arg(long, default_value = "http://127.0.0.1:6632")]
    pub url: Vec<String>,
    /// The server that takes the pushes, to measure wakes between nodes [default: the first --url].
    #[arg(long)]
    pub push_url: Option<String>,
    /// Bearer token for every request.
    #[arg(long)]
    pub token: Option<String>,

    /// How many pops to hold.
    #[arg(long, default_value_t = 10_000)]
    pub waiters: usize,
    /// Whether all waiters share one queue, or each has its own.
    #[arg(long, value_enum, default_value_t = Topics::One)]
    pub topics: Topics,
    /// 1: a connection per waiter. 2: HTTP/2 with prior knowledge over a few connections.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub http: u8,
    /// How many connections carry the waiters over HTTP/2.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// How long the server may hold each pop.
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    pub timeout: Duration,
    /// Pop with a lease and acknowledge, instead of autoAck.
    #[arg(long)]
    pub lease: bool,

    /// How long to watch the waiters while nothing happens.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub idle: Duration,
    /// How long to wait for a server that does not say how many pops it holds.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    pub settle: Duration,
    /// How many times to push one message and time the pop that gets it.
    #[arg(long, default_value_t = 200)]
    pub wakes: usize,
    /// At the end, push a message for every waiter and time until all are answered.
    #[arg(long)]
    pub wake_all: bool,

    /// Read memory and CPU of this process (repeat for several nodes) instead of /metrics.
    #[arg(long)]
    pub pid: Vec<u32>,
    /// Count statements in this PostgreSQL database instead of /metrics.
    #[arg(long, value_name = "URL")]
    pub postgres: Option<String>,

    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
    /// Report whether the 99th percentile from the push's answer to the pop's is within this.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub target_p99: Option<Duration>,
    /// Report whether a held pop takes at most this much memory (14k, 8Ki).
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub target_bytes: Option<f64>,
    /// Report whether idle waiters cost at most this many statements per second.
    #[arg(long, value_name = "PER_SECOND")]
    pub target_statements: Option<f64>,
    /// Report whether idle waiters cost at most this many percent of one core.
    #[arg(long, value_name = "PERCENT")]
    pub target_cpu: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Topics {
    One,
    Each,
}

impl HoldArgs {
    /// Everything that can be known to fail before the first connection.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        check_counts(&[
            ("--waiters", self.waiters),
            ("--connections", self.connections),
        ])?;
        check_times(&[("--idle", self.idle)])?;
        ensure!(
            self.target_p99.is_none() || self.wakes > 0,
            "--target-p99 needs --wakes of at least 1"
        );
        if self.http == 2 {
            return open_files::check(self.connections.max(self.url.len()), HTTP2);
        }
        let per_url = self.waiters.div_ceil(self.url.len());
        ensure!(
            per_url <= MAX_HTTP1_WAITERS_PER_URL,
            "{per_url} connections to one address need more local ports than there are: use \
             `--http 2`, or give the server's other addresses with more --url"
        );
        open_files::check(self.waiters, HTTP2)
    }
}
