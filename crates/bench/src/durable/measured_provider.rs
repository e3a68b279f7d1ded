//! A provider of duroxide that is measured.

use std::sync::Arc;

use anyhow::Context;
use duroxide::providers::Provider;
use futures_util::future::BoxFuture;
use wakeline_durable::PostgresProvider;

use crate::failures::Failures;
use crate::meter::{DatabaseCounters, DatabaseUsage};
use crate::setup::Databases;

/// Another provider of duroxide. The program that has it passes it in: see `peers/`.
#[derive(Debug, Clone, Copy)]
pub struct PeerProvider {
    /// As `--peers` and the report name it.
    pub name: &'static str,
    /// Connects to the database of this URL, which is new and empty.
    pub connect: fn(String) -> ProviderFuture,
}

pub type ProviderFuture = BoxFuture<'static, anyhow::Result<Arc<dyn Provider>>>;

pub(super) struct MeasuredProvider {
    pub(super) name: &'static str,
    pub(super) inner: Arc<dyn Provider>,
    /// Ours once more, for the wait that only it offers.
    pub(super) own: Option<PostgresProvider>,
    pub(super) failures: Failures,
    counters: DatabaseCounters,
}

impl MeasuredProvider {
    pub(super) async fn wakeline(databases: &Databases) -> anyhow::Result<Self> {
        let (url, counters) = database(databases, "wakeline").await?;
        let provider = PostgresProvider::connect(&url).await?;
        Ok(Self {
            name: super::WAKELINE,
            inner: Arc::new(provider.clone()),
            own: Some(provider),
            failures: Failures::default(),
            counters,
        })
    }

    pub(super) async fn peer(peer: &PeerProvider, databases: &Databases) -> anyhow::Result<Self> {
        let (url, counters) = database(databases, &peer.name.replace('-', "_")).await?;
        let provider = (peer.connect)(url)
            .await
            .with_context(|| format!("connecting {}", peer.name))?;
        Ok(Self {
            name: peer.name,
            inner: provider,
            own: None,
            failures: Failures::default(),
            counters,
        })
    }

    pub(super) async fn usage(&self) -> anyhow::Result<DatabaseUsage> {
        self.counters.usage().await
    }
}

/// A new database for one provider, with its URL.
async fn database(databases: &Databases, name: &str) -> anyhow::Result<(String, DatabaseCounters)> {
    let (postgres, url) = databases.make(name)?;
    let counters = DatabaseCounters::of_other(&postgres.url(), name).await?;
    Ok((url, counters))
}
