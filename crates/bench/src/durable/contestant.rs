//! A provider that is measured.

use std::sync::Arc;

use anyhow::Context;
use duroxide::providers::Provider;
use futures_util::future::BoxFuture;
use tokio_postgres::{NoTls, SimpleQueryMessage};
use wakeline_durable::PostgresProvider;
use wakeline_testbed::{Postgres, psql};

use crate::failures::Failures;

/// A provider of another make. Programs that have one hand it in: see `peers/`.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    pub name: &'static str,
    /// To the database of this URL, which is new and empty.
    pub connect: fn(String) -> Connecting,
}

pub type Connecting = BoxFuture<'static, anyhow::Result<Arc<dyn Provider>>>;

pub(super) struct Contestant {
    pub(super) name: &'static str,
    pub(super) provider: Arc<dyn Provider>,
    /// The same once more if it is ours, for what only it can do.
    pub(super) own: Option<PostgresProvider>,
    pub(super) failures: Failures,
    counters: Counters,
}

impl Contestant {
    pub(super) async fn wakeline(postgres: &Postgres) -> anyhow::Result<Self> {
        let (url, counters) = database(postgres, "wakeline").await?;
        let provider = PostgresProvider::connect(&url).await?;
        Ok(Self {
            name: super::WAKELINE,
            provider: Arc::new(provider.clone()),
            own: Some(provider),
            failures: Failures::default(),
            counters,
        })
    }

    pub(super) async fn peer(peer: &Peer, postgres: &Postgres) -> anyhow::Result<Self> {
        let (url, counters) = database(postgres, &peer.name.replace('-', "_")).await?;
        let provider = (peer.connect)(url)
            .await
            .with_context(|| format!("connecting {}", peer.name))?;
        Ok(Self {
            name: peer.name,
            provider,
            own: None,
            failures: Failures::default(),
            counters,
        })
    }

    pub(super) async fn cost(&self) -> anyhow::Result<Cost> {
        self.counters.read().await
    }
}

async fn database(postgres: &Postgres, name: &str) -> anyhow::Result<(String, Counters)> {
    psql(&postgres.url(), &format!("CREATE DATABASE {name}"))?;
    Ok((
        postgres.url_for(name),
        Counters::connect(&postgres.url(), name).await?,
    ))
}

/// What PostgreSQL has counted for one database, read from another: questions are not counted.
struct Counters {
    client: tokio_postgres::Client,
    question: String,
}

/// Since the server was started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// At the top level, if this PostgreSQL counts them.
    pub(super) statements: Option<f64>,
    pub(super) transactions: f64,
    /// Of the whole server.
    pub(super) wal_bytes: f64,
}

impl Counters {
    async fn connect(url: &str, database: &str) -> anyhow::Result<Self> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        // Not installed everywhere.
        let _ = client
            .batch_execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            .await;
        let has_statements = client
            .simple_query("SELECT 1 FROM pg_stat_statements LIMIT 1")
            .await
            .is_ok();
        let statements = if has_statements {
            format!(
                "(SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE toplevel \
                 AND dbid = (SELECT oid FROM pg_database WHERE datname = '{database}'))"
            )
        } else {
            "NULL".to_owned()
        };
        Ok(Self {
            client,
            question: format!(
                "SELECT {statements}, xact_commit + xact_rollback, \
                 pg_current_wal_insert_lsn() - '0/0'::pg_lsn \
                 FROM pg_stat_database WHERE datname = '{database}'"
            ),
        })
    }

    async fn read(&self) -> anyhow::Result<Cost> {
        let answer = self.client.simple_query(&self.question).await?;
        let row = answer
            .iter()
            .find_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            })
            .context("PostgreSQL counts nothing for this database")?;
        let number = |column: usize| row.get(column).map(str::parse::<f64>).transpose();
        Ok(Cost {
            statements: number(0)?,
            transactions: number(1)?.unwrap_or_default(),
            wal_bytes: number(2)?.unwrap_or_default(),
        })
    }
}
