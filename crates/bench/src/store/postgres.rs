//! PostgreSQL: the batches as the doors run them, against a statement per call over all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use futures_util::future::BoxFuture;
use tokio_postgres::Client;
use tokio_postgres::types::Type;
use wakeline_store::Postgres;
use wakeline_store::postgres::{Batch, Batcher, Options, RunError, WORKERS, Weigh};

use super::BODY;

const INSERT: &str = "INSERT INTO wakeline.bench (body) SELECT * FROM unnest($1)";
const MAKE: &str = "CREATE TABLE wakeline.bench (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea NOT NULL)";

pub(super) struct PostgresStore {
    postgres: Postgres,
    batcher: Batcher<Insert>,
    batches: Arc<AtomicU64>,
    version: String,
}

impl PostgresStore {
    pub(super) async fn open(url: &str) -> anyhow::Result<Self> {
        let options = Options::default();
        let postgres = Postgres::open(url, &options, &[]).await?;
        let version = postgres
            .query("version", "SHOW server_version", &[])
            .await?;
        postgres.query("make", MAKE, &[]).await.context(
            "is another run under way, or was one cut short? `DROP TABLE wakeline.bench`",
        )?;
        let batches = Arc::<AtomicU64>::default();
        let insert = Insert(batches.clone());
        Ok(Self {
            batcher: Batcher::start(&postgres, insert, WORKERS),
            postgres,
            batches,
            version: version[0].get(0),
        })
    }

    pub(super) async fn write_in_group(&self) -> Result<(), wakeline_store::Error> {
        self.batcher.submit(Body).await
    }

    /// Each call is a statement, a statement a transaction.
    pub(super) async fn write_alone(&self) -> Result<(), wakeline_store::Error> {
        let body: Vec<&[u8]> = vec![&BODY];
        let parameters = [(&body as _, Type::BYTEA_ARRAY)];
        self.postgres.query("bench", INSERT, &parameters).await?;
        Ok(())
    }

    pub(super) fn group_commits(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }

    pub(super) fn describe(&self) -> String {
        format!(
            "PostgreSQL {}, synchronous_commit=on, {WORKERS} connections for groups, {} for single calls",
            self.version,
            self.postgres.options().connections
        )
    }

    pub(super) async fn drop_table(&self) -> anyhow::Result<()> {
        let drop = "DROP TABLE wakeline.bench";
        self.postgres.query("drop", drop, &[]).await?;
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Body;

impl Weigh for Body {}

/// Counts its statements.
struct Insert(Arc<AtomicU64>);

impl Batch for Insert {
    type Operation = Body;
    type Output = ();

    const KIND: &'static str = "bench";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Body],
    ) -> BoxFuture<'a, Result<Vec<()>, RunError>> {
        Box::pin(async move {
            self.0.fetch_add(1, Ordering::Relaxed);
            let bodies: Vec<&[u8]> = operations.iter().map(|_| &BODY[..]).collect();
            client
                .query_typed(INSERT, &[(&bodies, Type::BYTEA_ARRAY)])
                .await?;
            Ok(vec![(); operations.len()])
        })
    }
}
