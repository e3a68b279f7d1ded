//! `wakeline durable`: looks at and tidies a schema of durable workflows, without a server. It never
//! makes or migrates a schema.

mod end;
mod look;
mod prune;
mod text;
mod when;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use wakeline_durable::{Options, Policy, PoolOptions, PostgresProvider, View};

/// How long the end of a command waits for its wakes to be sent.
const LAST_WAKES: Duration = Duration::from_secs(5);
/// How long an outage is ridden out before the command gives up.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List instances, the newest first.
    List(look::List),
    /// Show an instance: its result, values, queue, children and executions.
    Show(look::Show),
    /// Show the events of an execution in order.
    History(look::History),
    /// Show how many instances there are in which state, and what waits in the queues.
    Stats(look::Stats),
    /// Ask an instance to cancel.
    Cancel(end::Cancel),
    /// Delete an instance, with its sub-orchestrations and all that belongs to them.
    Delete(end::Delete),
    /// Delete old executions, or finished instances.
    Prune(prune::Prune),
}

pub(crate) async fn run(command: Command) -> Result<()> {
    match command {
        Command::List(list) => list.run().await,
        Command::Show(show) => show.run().await,
        Command::History(history) => history.run().await,
        Command::Stats(stats) => stats.run().await,
        Command::Cancel(cancel) => cancel.run().await,
        Command::Delete(delete) => delete.run().await,
        Command::Prune(prune) => prune.run().await,
    }
}

/// Where the workflows are. The variables are those of the server's settings.
#[derive(Clone, Debug, Args)]
struct Place {
    /// The URL of the PostgreSQL database.
    #[arg(
        long,
        env = "WAKELINE_DURABLE_DATABASE",
        hide_env_values = true,
        value_name = "URL"
    )]
    database: String,
    /// The schema in it.
    #[arg(long, env = "WAKELINE_DURABLE_SCHEMA", default_value = "durable")]
    schema: String,
}

impl Place {
    /// For looking: it has no part in the wakes.
    fn view(&self) -> View {
        let pool = PoolOptions {
            connections: 1,
            ..PoolOptions::default()
        };
        View::new(&self.database, &self.schema, pool)
    }

    /// For changing something that others must learn of.
    async fn provider(&self) -> Result<PostgresProvider> {
        let options = Options {
            schema: self.schema.clone(),
            pool_size: 1,
            migrations: Policy::Verify,
            history_cache_bytes: 0,
            outage_patience: PATIENCE,
            ..Options::default()
        };
        PostgresProvider::connect_with(&self.database, options)
            .await
            .context("--database")
    }
}
