//! Load generators and their reports, mounted by the CLI as `wakeline bench …`.
//!
//! Nothing here knows the server from the inside: a server is a URL that speaks the protocol,
//! and what it costs is read from its metrics, from `/proc`, or from its database.

mod hold;
mod meter;
mod open_files;
mod percentiles;
mod units;

pub use hold::HoldArgs;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Hold many pops on a server: what they cost while nothing happens, and how fast they wake.
    ///
    /// Memory per waiter is what the server's process grew by, so start the server afresh for
    /// each run: memory that its allocator kept from an earlier run hides what this one takes.
    Hold(HoldArgs),
}

pub async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Hold(args) => hold::run(args).await,
    }
}
