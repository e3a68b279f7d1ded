//! The store on PostgreSQL: saves that arrive together are one call of one function.

mod batch;
mod definitions;
mod facts;
mod keys;
mod log;
mod names;
mod purging;
mod queries;
mod save;
mod signers;

use std::sync::{Arc, atomic::AtomicI64};

use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batcher, WORKERS},
};

use self::{save::Saves, signers::SignerKeys};
use super::names::NameCache;
use crate::DOOR;

pub const MIGRATIONS: Migrations = Migrations {
    door: DOOR,
    steps: &[
        include_str!("postgres/001_facts.sql"),
        include_str!("postgres/002_definitions.sql"),
        include_str!("postgres/003_user_keys.sql"),
        include_str!("postgres/004_queries.sql"),
    ],
};

/// Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    postgres: Postgres,
    saves: Batcher<Saves>,
    pub(super) names: Arc<NameCache>,
    signers: Arc<SignerKeys>,
    /// The last horizon: what is settled stays settled, also while a save holds a floor below it.
    settled: Arc<AtomicI64>,
}

impl PostgresStore {
    #[must_use]
    pub fn new(postgres: Postgres) -> Self {
        Self {
            saves: Batcher::start(&postgres, Saves, WORKERS),
            postgres,
            names: Arc::default(),
            signers: Arc::default(),
            settled: Arc::default(),
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

/// The only row of an answer that has one.
fn only(rows: &[Row]) -> Result<&Row, Error> {
    rows.first()
        .ok_or_else(|| Error::OutcomeUnknown("an answer without a row".into()))
}
