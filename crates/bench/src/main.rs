//! The `wakeline-bench` binary: the load generators and reports.

use clap::Parser;

// As the server's own: what the load generator allocates must not slow it down.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Measure Wakeline, alone or beside the systems whose protocols it speaks.
#[derive(Debug, Parser)]
#[command(name = "wakeline-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: wakeline_bench::Command,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    wakeline_bench::run(Cli::parse().command).await
}
