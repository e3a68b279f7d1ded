//! The steps on PostgreSQL: each write is one call of a function beside this file, and the calls of
//! one moment share a round trip and a commit.

/// The parameters of a statement, each with its type.
macro_rules! parameters {
    ($( $value:expr => $kind:expr ),* $(,)?) => {
        vec![$( (Box::new($value) as $crate::store::postgres::call::Parameter, $kind) ),*]
    };
}

mod call;
mod frames;
mod jobs;
mod pieces;
mod providers;
mod results;
mod tasks;
mod users;
mod workers;

use std::sync::Arc;

use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use wakeline_bus::{Wakes, Write};
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batcher, WORKERS},
};

use self::{
    call::{Call, Calls, Parameter},
    pieces::PostgresPieces,
};
use super::Step;
use crate::{results::Pieces, topic};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[
        include_str!("postgres/001_tables.sql"),
        include_str!("postgres/002_steps.sql"),
        include_str!("postgres/003_users.sql"),
        include_str!("postgres/003_results.sql"),
        include_str!("postgres/004_frames.sql"),
        include_str!("postgres/005_guests.sql"),
        include_str!("postgres/006_claims.sql"),
        include_str!("postgres/007_answers.sql"),
        include_str!("postgres/008_looks.sql"),
        include_str!("postgres/009_internal_jobs.sql"),
        include_str!("postgres/010_unclaim.sql"),
        include_str!("postgres/011_glances.sql"),
        include_str!("postgres/012_fences.sql"),
        include_str!("postgres/013_pieces.sql"),
    ],
};

#[derive(Debug)]
pub struct PostgresStore {
    postgres: Postgres,
    calls: Batcher<Calls>,
    pieces: Arc<dyn Pieces>,
}

impl PostgresStore {
    #[must_use]
    pub fn new(postgres: Postgres) -> Self {
        Self {
            calls: Batcher::start(&postgres, Calls, WORKERS),
            pieces: Arc::new(PostgresPieces(postgres.clone())),
            postgres,
        }
    }

    /// Shares its commit with the writes of the same moment. `read` makes a value of its rows.
    fn write<T: Send + 'static>(
        &self,
        statement: &'static str,
        parameters: Vec<(Parameter, Type)>,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
        read: impl FnOnce(&[Row]) -> Result<T, Error> + Send + 'static,
    ) -> Write<T> {
        let (calls, call) = (self.calls.clone(), Call::new(statement, parameters));
        let run = async move { read(&calls.submit(call).await?) };
        Write::new(topic::DOOR, run, wakes)
    }

    /// A question by itself.
    async fn ask(
        &self,
        kind: &'static str,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        self.postgres.query(kind, statement, parameters).await
    }
}

/// The only row of an answer that has one.
fn only(rows: &[Row]) -> Result<&Row, Error> {
    rows.first()
        .ok_or_else(|| Error::OutcomeUnknown("an answer without a row".into()))
}
