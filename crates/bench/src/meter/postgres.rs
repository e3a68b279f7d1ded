//! The counters of PostgreSQL itself, which exist for any server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Backends report their counters at most once a second, and an idle one only after ten: read
/// earlier, the idle time would be charged with the work that came before it.
pub(crate) const COUNTED_WITHIN: Duration = Duration::from_secs(11);

/// The counters of one database.
pub(crate) struct DatabaseCounters {
    client: Client,
    query: String,
    has_statements: bool,
    /// Our own transactions, where the database counts them too.
    own: Option<AtomicU64>,
}

/// Since the server was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseUsage {
    /// If this PostgreSQL counts them.
    pub(crate) statements: Option<f64>,
    pub(crate) transactions: f64,
    /// Write-ahead log of the whole server.
    pub(crate) wal_bytes: f64,
}

impl DatabaseCounters {
    /// Of the database at this URL; `None` without a URL.
    pub(crate) async fn connect_to(url: Option<&str>) -> anyhow::Result<Option<Self>> {
        match url {
            Some(url) => Ok(Some(Self::connect(url, "current_database()").await?)),
            None => Ok(None),
        }
    }

    /// Of `database`, read from another database of the same server, so that reading is not counted.
    pub(crate) async fn of_other(url: &str, database: &str) -> anyhow::Result<Self> {
        let mut counters = Self::connect(url, &format!("'{database}'")).await?;
        counters.own = None;
        Ok(counters)
    }

    async fn connect(url: &str, database: &str) -> anyhow::Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls)
            .await
            .context("connecting to PostgreSQL (without TLS) to read its counters")?;
        tokio::spawn(connection);
        // All statements but those of meters like this one.
        let statements = format!(
            "(SELECT coalesce(sum(calls), 0) FROM pg_stat_statements \
             WHERE dbid = (SELECT oid FROM pg_database WHERE datname = {database}) \
             AND query NOT LIKE '%pg_stat_%')"
        );
        let has_statements = client
            .simple_query(&format!("SELECT {statements}"))
            .await
            .is_ok();
        let statements = if has_statements { &*statements } else { "NULL" };
        let query = format!(
            "SELECT {statements}, xact_commit + xact_rollback, \
             pg_current_wal_insert_lsn() - '0/0'::pg_lsn \
             FROM pg_stat_database WHERE datname = {database}"
        );
        Ok(Self {
            client,
            query,
            has_statements,
            own: Some(AtomicU64::new(0)),
        })
    }

    /// How long the counters lag behind the work; `pg_stat_statements` does not.
    pub(crate) fn lag(&self) -> Option<Duration> {
        (!self.has_statements).then_some(COUNTED_WITHIN)
    }

    pub(crate) async fn usage(&self) -> anyhow::Result<DatabaseUsage> {
        // As a simple query: a prepared one would be two transactions, one for its parse.
        let messages = self.client.simple_query(&self.query).await?;
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let row = row.context("PostgreSQL counts nothing for this database")?;
        let number = |column: usize| row.get(column).map(str::parse::<f64>).transpose();
        // Subtracted one reading late: a transaction is counted when it has ended.
        let own = self.own.as_ref();
        let own = own.map_or(0, |own| own.fetch_add(1, Ordering::Relaxed));
        Ok(DatabaseUsage {
            statements: number(0)?,
            transactions: number(1)?.unwrap_or_default() - own as f64,
            wal_bytes: number(2)?.unwrap_or_default(),
        })
    }

    /// Statements, or transactions where statements are not counted.
    pub(crate) async fn statements(&self) -> anyhow::Result<f64> {
        let usage = self.usage().await.context("reading pg_stat_database")?;
        Ok(usage.statements.unwrap_or(usage.transactions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn flush(client: &Client) {
        client
            .simple_query("SELECT pg_stat_force_next_flush()")
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn transactions_of_other_sessions_are_counted_and_our_readings_are_not() {
        let server = wakeline_testbed::Postgres::start().unwrap();
        let database = DatabaseCounters::connect_to(Some(&server.url()))
            .await
            .unwrap()
            .unwrap();
        let before = database.statements().await.unwrap();
        for _ in 0..50 {
            database.statements().await.unwrap();
        }
        flush(&database.client).await;

        let (other, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..100 {
            other.simple_query("SELECT 1").await.unwrap();
        }
        flush(&other).await;

        // A backend reports after it has answered, so the count may come a moment later.
        let mut counted = 0.0;
        for _ in 0..200 {
            let now = database.statements().await.unwrap();
            counted = now - before;
            if counted >= 100.0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!((100.0..110.0).contains(&counted), "{counted}");
    }
}
