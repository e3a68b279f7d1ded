//! Load generators and their reports: the `wakeline-bench` binary, apart from the server's so that
//! the server carries neither them nor the test servers that they start.
//!
//! Nothing here knows the server from the inside: a server is a URL that speaks the protocol, or a
//! program that becomes one. What it costs is read from its metrics, from `/proc`, or from its
//! database. Only `store` and `durable` have no server: they measure those crates by themselves.

mod args;
mod calibrate;
mod comparison;
mod connection;
mod durable;
mod failures;
mod feed;
mod figure;
mod hold;
mod jobs;
mod load;
mod meter;
mod open_files;
mod peer;
mod percentiles;
mod queue;
mod report;
mod server;
mod server_process;
mod setup;
#[cfg(feature = "store")]
mod store;
mod suite;
mod target;
mod units;
mod verify;

pub use durable::{DurableArgs, PeerProvider, ProviderFuture};
pub use feed::FeedArgs;
pub use hold::HoldArgs;
pub use jobs::JobsArgs;
pub use queue::QueueArgs;
#[cfg(feature = "store")]
pub use store::StoreArgs;
pub use verify::VerifyArgs;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Run workflows of duroxide on Wakeline's PostgreSQL provider: what it costs while idle, how fast
    /// it picks work up, how late its timers are, and its throughput.
    ///
    /// The command starts a PostgreSQL of its own. `cargo run --release --manifest-path
    /// peers/Cargo.toml` does the same beside duroxide-pg and duroxide-pg-opt.
    Durable(DurableArgs),
    /// Save facts on a server that speaks Jinaga's protocol and stream them back: rates, how the
    /// backfill grows, and how late a saved fact arrives at many open streams.
    ///
    /// With --url the server must speak the protocol under /jinaga and need no login. Without --url
    /// the command starts servers of its own. With --side-by-side these are a host of jinaga-server
    /// (`upstream`), Wakeline on the same PostgreSQL and Wakeline on SQLite, and every phase runs on
    /// each in turn.
    Feed(FeedArgs),
    /// Hold many pops on a server: what they cost while nothing happens, and how fast they wake.
    ///
    /// Memory per waiter is the growth of the server's process. Start the server afresh for each run:
    /// memory that its allocator kept from an earlier run hides what this run takes.
    Hold(HoldArgs),
    /// Read, hold and work on a server that speaks zndraw-joblib's protocol: provider reads cold,
    /// warm and held, tasks from submission to completion, and the wait for a task.
    ///
    /// With --url the server must let guests register jobs and providers. Without --url the command
    /// starts servers of its own. With --side-by-side these are a host of zndraw-joblib (`upstream`),
    /// Wakeline on the same PostgreSQL and Wakeline on SQLite, and every phase runs on each in turn.
    Jobs(JobsArgs),
    /// Push, drain and wait on a server that speaks Queen's protocol: its rates and its latency.
    ///
    /// Without --url the command starts a server of its own. With --side-by-side it starts Queen,
    /// Wakeline on the same PostgreSQL and Wakeline on SQLite, and runs every phase on each in turn.
    Queue(QueueArgs),
    #[cfg(feature = "store")]
    /// Write small rows straight into a store: group commit against a commit for every call.
    Store(StoreArgs),
    /// Kill nodes, restart the database and let leases run out under load, then prove from what
    /// producers and consumers saw that no message was lost, reordered or delivered twice at once.
    ///
    /// The command starts its own servers. A run that fails prints its seed. --seed repeats the
    /// choices of that run, not its timing.
    Verify(VerifyArgs),
}

pub async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Durable(args) => durable::run(args, &[]).await,
        Command::Feed(args) => suite::run_on_one_thread(args).await,
        Command::Hold(args) => suite::run(args).await,
        Command::Jobs(args) => suite::run_on_one_thread(args).await,
        Command::Queue(args) => suite::run_on_one_thread(args).await,
        #[cfg(feature = "store")]
        Command::Store(args) => suite::run(args).await,
        Command::Verify(args) => verify::run(args).await,
    }
}

/// Runs `bench durable` beside other providers of duroxide, each in a database of its own on the same
/// PostgreSQL.
pub async fn durable_beside(args: DurableArgs, peers: &[PeerProvider]) -> anyhow::Result<()> {
    durable::run(args, peers).await
}
