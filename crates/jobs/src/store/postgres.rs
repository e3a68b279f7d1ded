//! The steps on PostgreSQL: each write is one call of a function beside this file, and the calls of
//! one moment share a round trip and a commit.

mod call;
mod chunks;
mod frames;
mod jobs;
mod providers;
mod results;
mod tasks;
mod users;
mod values;
mod workers;

use std::sync::Arc;

use futures_util::FutureExt;
use wakeline_bus::{Wakes, Write};
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batcher, WORKERS},
};

use self::{
    call::{Call, Calls},
    chunks::PostgresChunks,
};
use super::{Query, Row, StoreFuture, Value};
use crate::{results::ChunkStore, topic};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[
        include_str!("postgres/001_users.sql"),
        include_str!("postgres/002_jobs.sql"),
        include_str!("postgres/003_tasks.sql"),
        include_str!("postgres/004_providers.sql"),
        include_str!("postgres/005_results.sql"),
        include_str!("postgres/006_frames.sql"),
    ],
};

#[derive(Debug)]
pub struct PostgresStore {
    postgres: Postgres,
    calls: Batcher<Calls>,
    chunks: Arc<dyn ChunkStore>,
}

impl PostgresStore {
    #[must_use]
    pub fn new(postgres: Postgres) -> Self {
        Self {
            calls: Batcher::start(&postgres, Calls, WORKERS),
            chunks: Arc::new(PostgresChunks(postgres.clone())),
            postgres,
        }
    }

    /// Shares its commit with the writes of the same moment. `read` makes a value of its rows.
    fn write<T: Send + 'static>(
        &self,
        statement: &'static str,
        parameters: Vec<Value>,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
        read: impl FnOnce(&[Row]) -> Result<T, Error> + Send + 'static,
    ) -> Write<T> {
        let parameters = parameters.into();
        let (calls, call) = (
            self.calls.clone(),
            Call {
                statement,
                parameters,
            },
        );
        let run = async move { read(&values::rows(&calls.submit(call).await?)) };
        Write::new(topic::DOOR, run, wakes)
    }

    /// A write that is a statement and a transaction by itself.
    fn write_alone<T: Send + 'static>(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
        read: impl FnOnce(&[Row]) -> Result<T, Error> + Send + 'static,
    ) -> Write<T> {
        let postgres = self.postgres.clone();
        let run = async move { read(&rows(&postgres, kind, statement, &parameters).await?) };
        Write::new(topic::DOOR, run, wakes)
    }
}

impl Query for PostgresStore {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> StoreFuture<'_, Vec<Row>> {
        async move { rows(&self.postgres, kind, statement, &parameters).await }.boxed()
    }
}

async fn rows(
    postgres: &Postgres,
    kind: &'static str,
    statement: &str,
    parameters: &[Value],
) -> Result<Vec<Row>, Error> {
    let (statement, parameters) = (worded(statement), values::typed(parameters));
    let rows = postgres.query(kind, &statement, &parameters).await?;
    Ok(values::rows(&rows))
}

/// The statement in this database's words.
fn worded(statement: &str) -> String {
    let mut worded = String::with_capacity(statement.len());
    let mut rest = statement;
    while let Some((before, behind)) = rest.split_once("{in ") {
        let (parameter, behind) = behind.split_once('}').expect("a bracket is closed");
        worded.push_str(before);
        worded.push_str("= ANY (");
        worded.push_str(parameter);
        worded.push(')');
        rest = behind;
    }
    worded.push_str(rest);
    worded
}
