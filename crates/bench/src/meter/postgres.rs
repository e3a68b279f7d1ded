//! What PostgreSQL itself has counted, which holds for a server of any make.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::Statements;

/// Backends report their counters at most once a second, and an idle one only after ten: read
/// earlier, the idle time would be charged with the work that came before it.
const SETTLE: Duration = Duration::from_secs(11);

pub(crate) struct Database {
    client: Client,
    has_statements: bool,
    /// Our own transactions, which the database counts like everybody's.
    own: AtomicU64,
}

impl Database {
    pub(crate) async fn connect(url: &str) -> anyhow::Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls)
            .await
            .context("connecting to PostgreSQL (without TLS) to read its counters")?;
        tokio::spawn(connection);
        let has_statements = count(&client, CALLS).await.is_ok();
        Ok(Self {
            client,
            has_statements,
            own: AtomicU64::new(0),
        })
    }

    /// `pg_stat_statements` counts at once.
    pub(crate) fn settle_time(&self) -> Option<Duration> {
        (!self.has_statements).then_some(SETTLE)
    }

    pub(crate) async fn statements(&self) -> anyhow::Result<Statements> {
        if self.has_statements {
            return Ok(Statements {
                count: count(&self.client, CALLS)
                    .await
                    .context("reading pg_stat_statements")?,
                source: "pg_stat_statements",
            });
        }
        // Subtracted one reading late: a transaction is counted when it has ended.
        let own = self.own.fetch_add(1, Ordering::Relaxed);
        let all = count(&self.client, TRANSACTIONS)
            .await
            .context("reading pg_stat_database")?;
        Ok(Statements {
            count: all - own as f64,
            source: "transactions in pg_stat_database",
        })
    }
}

/// As a simple query: a prepared one would be two transactions, one for its parse.
async fn count(client: &Client, sql: &str) -> anyhow::Result<f64> {
    let answer = client.simple_query(sql).await?;
    let count = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(count.context("no row")?.parse()?)
}

/// Everything but the questions of meters like this one.
const CALLS: &str = "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements \
     WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
     AND query NOT LIKE '%pg_stat_%'";

const TRANSACTIONS: &str = "SELECT xact_commit + xact_rollback FROM pg_stat_database \
     WHERE datname = current_database()";

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
    async fn transactions_of_others_are_counted_and_our_readings_are_not() {
        let server = wakeline_testbed::Postgres::start().unwrap();
        let database = Database::connect(&server.url()).await.unwrap();
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
        other
            .simple_query("SELECT pg_stat_force_next_flush()")
            .await
            .unwrap();

        // A backend reports after it has answered, so the count may come a moment later.
        let mut counted = 0.0;
        for _ in 0..200 {
            let now = database.statements().await.unwrap();
            assert_eq!(now.source, before.source);
            counted = now.count - before.count;
            if counted >= 100.0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!((100.0..110.0).contains(&counted), "{counted}");
    }
}
