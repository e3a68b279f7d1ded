//! `bench hold`, `jobs` and `feed` against fake servers that keep everything in memory. These tests
//! check the load generators, not the product.

mod fake_feed;
mod fake_jobs;
mod fake_queue;
mod fake_server;
mod feed;
mod hold;
mod jobs;

use clap::Parser;
use wakeline_bench::Command;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Runs a command as `wakeline-bench` would.
async fn bench(line: &str) -> anyhow::Result<()> {
    let line = format!("bench {line}");
    let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
    wakeline_bench::run(cli.command).await
}
