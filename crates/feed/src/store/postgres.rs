//! The steps on PostgreSQL: saves of one moment are one call of a function beside this file.

mod names;

use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use wakeline_store::{Error, Migrations, Postgres};

use super::names::Names;
use crate::DOOR;

pub const MIGRATIONS: Migrations = Migrations {
    door: DOOR,
    steps: &[
        include_str!("postgres/001_tables.sql"),
        include_str!("postgres/002_steps.sql"),
    ],
};

#[derive(Debug)]
pub struct PostgresStore {
    postgres: Postgres,
    names: Names,
}

impl PostgresStore {
    #[must_use]
    pub fn new(postgres: Postgres) -> Self {
        Self {
            postgres,
            names: Names::default(),
        }
    }

    /// A statement by itself.
    async fn ask(
        &self,
        kind: &'static str,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        self.postgres.query(kind, statement, parameters).await
    }
}
