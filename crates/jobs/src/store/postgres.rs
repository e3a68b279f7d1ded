//! The steps on PostgreSQL: each write is one call of a function beside this file, and the calls of
//! one moment share a round trip and a commit.

mod call;
mod chat;
mod chunks;
mod frames;
mod jobs;
mod progress;
mod providers;
mod results;
mod tasks;
mod users;
mod values;
mod workers;

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use wakeline_bus::{Wakes, Write};
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batcher, WORKERS},
};

use self::{
    call::{Call, Calls},
    chunks::PostgresChunks,
};
use super::{Commit, Query, Row, StoreFuture, Value, only, write};
use crate::{results::ChunkStore, topic, worker::OwnerOutcome};

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

    /// A call of a function, in one transaction with the others of its moment.
    fn call<T: Send + 'static>(
        &self,
        statement: &'static str,
        parameters: Vec<Value>,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
        read: impl FnOnce(&[Row]) -> Result<T, Error> + Send + 'static,
    ) -> Write<T> {
        write(
            self,
            Commit::Shared("call"),
            statement,
            parameters,
            wakes,
            read,
        )
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

    fn written_rows(
        &self,
        commit: Commit,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        let (calls, postgres) = (self.calls.clone(), self.postgres.clone());
        async move {
            match commit {
                Commit::Shared(_) => {
                    let (statement, parameters) = (worded(statement), parameters.into());
                    let call = Call {
                        statement,
                        parameters,
                    };
                    Ok(values::rows(&calls.submit(call).await?))
                }
                Commit::Alone(kind) => rows(&postgres, kind, statement, &parameters).await,
            }
        }
        .boxed()
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

/// The outcome of a statement that saw what was there before it began: a row of what it `exists` of, or
/// an empty one.
fn owned<T>(rows: &[Row], done: impl FnOnce(&Row) -> T) -> Result<OwnerOutcome<T>, Error> {
    let row = only(rows)?;
    Ok(if !row.is_null("id") {
        OwnerOutcome::Done(done(row))
    } else if row.get("exists") {
        OwnerOutcome::NotOwner
    } else {
        OwnerOutcome::NotFound
    })
}

/// The statement in this database's words.
fn worded(statement: &str) -> String {
    statement
        .replace("{now}", "wakeline.jobs_now()")
        .replace("{in ", "= ANY (")
        .replace('}', ")")
}
