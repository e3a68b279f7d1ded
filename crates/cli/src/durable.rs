//! `wakeline durable`: inspects and cleans up a schema of durable workflows, without a server. It
//! never creates or migrates a schema.

mod end_instance;
mod inspect;
mod prune;
mod text;
mod time;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use wakeline_durable::{InstanceAdmin, PoolOptions, View};

/// How long a command waits for its wakes to be sent before it ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List instances, the newest first.
    List(inspect::List),
    /// Show an instance: its result, values, queue, children and executions.
    Show(inspect::Show),
    /// Show the events of an execution in order.
    History(inspect::History),
    /// Count instances by state, and the messages and activities that wait.
    Stats(inspect::Stats),
    /// Request that an instance is cancelled.
    Cancel(end_instance::Cancel),
    /// Delete an instance with its sub-orchestrations and everything of theirs.
    Delete(end_instance::Delete),
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

/// The database and schema of the workflows. The variables are those of the server's settings.
#[derive(Clone, Debug, Args)]
struct SchemaArgs {
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

impl SchemaArgs {
    /// To read the schema; it neither sends nor receives wakes.
    fn view(&self) -> View {
        View::new(&self.database, &self.schema, pool())
    }

    /// To change the schema and wake the runtimes that wait for it.
    async fn admin(&self) -> Result<InstanceAdmin> {
        InstanceAdmin::connect(&self.database, &self.schema, &pool())
            .await
            .context("--database")
    }
}

fn pool() -> PoolOptions {
    PoolOptions {
        connections: 1,
        ..PoolOptions::default()
    }
}
