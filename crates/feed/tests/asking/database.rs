//! A database of the test's own.

use std::sync::Arc;

use wakeline_feed::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore, system_clock},
};
use wakeline_testkit::{DatabaseKind, OpenStore, TestDatabase};

pub(crate) struct Database(TestDatabase);

impl Database {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        Self(TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await)
    }

    pub(crate) async fn postgres() -> Self {
        Self::open(DatabaseKind::Postgres).await
    }

    /// A store with connections of its own: another node.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self.0.open().await {
            OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, system_clock())),
            OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
        }
    }

    /// Rows and index entries that PostgreSQL reads for a question. No other store is open.
    pub(crate) async fn cost<T>(
        &self,
        question: impl AsyncFnOnce(Arc<dyn Store>) -> T,
    ) -> (T, u64) {
        let before = self.rows_read().await;
        let answer = question(self.store().await).await;
        (answer, self.rows_read().await - before)
    }

    async fn rows_read(&self) -> u64 {
        self.0.all_sessions_ended().await;
        let of = |column: &str, relation: &str| {
            format!(
                "coalesce((SELECT sum({column}) FROM pg_stat_user_{relation}
                 WHERE relname IN ('feed_fact', 'feed_edge')), 0)"
            )
        };
        let (tables, indexes) = (of("seq_tup_read", "tables"), of("idx_tup_read", "indexes"));
        let sql = format!("SELECT CAST({tables} + {indexes} AS bigint)");
        u64::try_from(self.0.number(&sql).await).unwrap()
    }
}
