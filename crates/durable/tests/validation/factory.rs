//! A new schema for each provider that a test asks for.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use duroxide::{provider_validation::ProviderFactory, providers::Provider};
use tokio_postgres::Client;
use wakeline_durable::{LongPollConfig, MIGRATIONS, Options, PostgresProvider};
use wakeline_store::postgres::{Connector, Options as PoolOptions};
use wakeline_testkit::PostgresDatabase;

/// The schema that the database's template has.
const FIRST: &str = "wakeline";

pub(crate) struct Factory {
    database: PostgresDatabase,
    is_woken: bool,
    count: AtomicU32,
    last_schema: Mutex<String>,
}

impl Factory {
    pub(crate) async fn woken() -> Self {
        Self::new(true).await
    }

    pub(crate) async fn polling() -> Self {
        Self::new(false).await
    }

    async fn new(is_woken: bool) -> Self {
        Self {
            database: PostgresDatabase::new(&[MIGRATIONS]).await,
            is_woken,
            count: AtomicU32::new(0),
            last_schema: Mutex::new(FIRST.into()),
        }
    }

    async fn client(&self) -> Client {
        Connector::new(&self.database.url(), &PoolOptions::default())
            .expect("the URL is valid")
            .connect()
            .await
            .expect("the test's server answers")
    }

    /// Waits until the instance has no lease and its messages become visible later.
    pub(crate) async fn until_delayed(&self, instance: &str, within: Duration) {
        let sql = format!(
            "SELECT FROM \"{}\".mailbox WHERE instance = $1 AND token IS NULL AND ready_at > now()",
            self.schema()
        );
        let client = self.client().await;
        let delayed = async {
            while client
                .query(&sql, &[&instance])
                .await
                .expect("rows")
                .is_empty()
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(within, delayed)
            .await
            .expect("it is delayed");
    }

    fn schema(&self) -> String {
        let last = self
            .last_schema
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        last.clone()
    }
}

#[async_trait::async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        let schema = match number {
            0 => FIRST.to_owned(),
            _ => format!("another {number}"),
        };
        *self
            .last_schema
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = schema.clone();
        let options = Options {
            schema,
            long_poll: LongPollConfig {
                enabled: self.is_woken,
                ..LongPollConfig::default()
            },
            ..Options::default()
        };
        let provider = PostgresProvider::connect_with(&self.database.url(), options)
            .await
            .expect("a fresh database can be opened");
        Arc::new(provider)
    }

    fn lock_timeout(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn short_poll_threshold(&self) -> Duration {
        crate::THRESHOLD
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        let sql = format!(
            "UPDATE \"{}\".event SET data = 'not an event' WHERE instance = $1",
            self.schema()
        );
        let client = self.client().await;
        let changed = client.execute(&sql, &[&instance]).await;
        assert!(changed.expect("the history can be edited") > 0);
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let schema = self.schema();
        // The current fetch counts.
        let sql = format!(
            "SELECT max(g.attempts + (m.token IS NOT NULL AND g.number <= m.leased_through)::integer)
             FROM \"{schema}\".message g JOIN \"{schema}\".mailbox m ON m.instance = g.instance
             WHERE g.instance = $1"
        );
        let client = self.client().await;
        let rows = client.query(&sql, &[&instance]).await;
        let attempts: i32 = rows.expect("the queue can be read")[0].get(0);
        u32::try_from(attempts).expect("a count")
    }
}
