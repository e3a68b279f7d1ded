//! The `wakeline` binary: the server, and a few commands to try it by hand.

mod call;
mod durable;
mod serve;

use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

// What it keeps per held connection decides what a waiter costs: see `wakeline-bench hold`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// One server for everything an application waits on: it holds the request until there is an
/// answer.
#[derive(Debug, Parser)]
#[command(name = "wakeline", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server.
    Serve(ServePlaceholder),
    /// Push a message to a queue.
    Push(call::Push),
    /// Pop messages from a queue, waiting for them if asked to.
    Pop(call::Pop),
    /// Acknowledge a message that was popped.
    Ack(call::Ack),
    /// Show who waits for what on a server.
    Waits(call::Waits),
    /// Look at durable workflows in a PostgreSQL database, cancel them, and tidy up.
    Durable {
        #[command(subcommand)]
        command: durable::Command,
    },
}

/// The flags of `serve` come from the table of settings: see [`serve::command`].
#[derive(Debug, Args)]
struct ServePlaceholder;

fn main() -> ExitCode {
    let command = Cli::command().mut_subcommand("serve", serve::command);
    let matches = command.get_matches();
    let outcome = match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        _ => Cli::from_arg_matches(&matches)
            .map_err(anyhow::Error::from)
            .and_then(|cli| block_on(run(cli.command))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wakeline: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(_) => unreachable!("answered before"),
        Command::Push(push) => push.run().await,
        Command::Pop(pop) => pop.run().await,
        Command::Ack(ack) => ack.run().await,
        Command::Waits(waits) => waits.run().await,
        Command::Durable { command } => durable::run(command).await,
    }
}

fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(work)
}
