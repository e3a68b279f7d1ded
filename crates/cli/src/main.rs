//! The `wakeline` binary: the server, and commands that call one.

mod call;
mod durable;
mod serve;

use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

// Its memory per held connection decides what a waiter costs: see `wakeline-bench hold`.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A queue, job and live-update server that clients long-poll over HTTP.
#[derive(Debug, Parser)]
#[command(name = "wakeline", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server.
    Serve(ServeArguments),
    /// Push a message to a queue.
    Push(call::Push),
    /// Pop messages from a queue, waiting for them if asked to.
    Pop(call::Pop),
    /// Acknowledge a popped message.
    Ack(call::Ack),
    /// Show the held requests of a server, and what they wait for.
    Waits(call::Waits),
    /// Show durable workflows in a PostgreSQL database, cancel and delete them.
    Durable {
        #[command(subcommand)]
        command: durable::Command,
    },
}

/// Empty: [`serve::command`] adds the flags from the table of settings.
#[derive(Debug, Args)]
struct ServeArguments;

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
        Command::Serve(_) => unreachable!("`main` runs it"),
        Command::Push(push) => push.run().await,
        Command::Pop(pop) => pop.run().await,
        Command::Ack(ack) => ack.run().await,
        Command::Waits(waits) => waits.run().await,
        Command::Durable { command } => durable::run(command).await,
    }
}

fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(future)
}
