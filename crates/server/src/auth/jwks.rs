//! The issuer's key set: fetched when it is first needed, and again when it is old or a token names
//! a key that is not in it.

mod fetch;
mod pace;

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::sync::Mutex;
use wakeline_web::token::Key;

use super::key::IssuerKey;
use crate::config;
use fetch::Fetcher;
use pace::{FetchPace, FetchReason};

#[derive(Debug)]
pub(crate) struct Jwks {
    fetcher: Fetcher,
    refresh: Duration,
    keys: RwLock<Option<FetchedKeys>>,
    /// Locked during a fetch, so that all requests that need the keys wait for one answer.
    pace: Mutex<FetchPace>,
}

#[derive(Clone, Debug)]
pub(super) struct FetchedKeys {
    pub(super) keys: Arc<Vec<IssuerKey>>,
    /// Tells one set from the next.
    pub(super) fetched_at: Instant,
}

/// How many keys of a set can be used.
pub(crate) fn count_keys(set: &[u8]) -> Result<usize> {
    fetch::parse(set).map(|keys| keys.len())
}

impl Jwks {
    pub(super) fn new(url: &config::Url, config: &config::Jwt) -> Result<Arc<Self>> {
        Self::at(url.expose(), config.jwks_timeout, config.jwks_refresh)
    }

    /// A key set that a provider of the feeds names.
    pub(crate) fn at(url: &str, timeout: Duration, refresh: Duration) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            fetcher: Fetcher::new(url, timeout)?,
            refresh,
            keys: RwLock::new(None),
            pace: Mutex::new(FetchPace::default()),
        }))
    }

    /// The keys of the last fetch. Old ones still serve while they are fetched in the background.
    pub(super) fn current(self: &Arc<Self>) -> Option<FetchedKeys> {
        let current = self.fetched()?;
        let fetched_at = current.fetched_at;
        if fetched_at.elapsed() >= self.refresh && self.may_refresh() {
            let jwks = self.clone();
            tokio::spawn(async move { jwks.fetch(FetchReason::Old, Some(fetched_at)).await });
        }
        Some(current)
    }

    /// The key with this id, if it was in the last fetch.
    pub(crate) fn key(self: &Arc<Self>, id: &str) -> Option<Key> {
        let current = self.current()?;
        let key = current.keys.iter().find(|key| key.has_id(id));
        key.map(|key| key.key.clone())
    }

    /// Not during a fetch, nor right after one that failed.
    fn may_refresh(&self) -> bool {
        let pace = self.pace.try_lock();
        pace.is_ok_and(|pace| pace.allows(FetchReason::Old, Instant::now()))
    }

    /// Fetches the keys, as far as the pace allows. Returns whether there are any keys afterwards,
    /// old or new.
    pub(crate) async fn renew(&self) -> bool {
        let before = self.fetched().map(|keys| keys.fetched_at);
        let reason = match before {
            None => FetchReason::Missing,
            Some(_) => FetchReason::UnknownKey,
        };
        self.fetch(reason, before).await;
        self.fetched().is_some()
    }

    async fn fetch(&self, reason: FetchReason, before: Option<Instant>) {
        let mut pace = self.pace.lock().await;
        // Another request has fetched them while this one waited.
        if self.fetched().map(|keys| keys.fetched_at) != before {
            return;
        }
        let now = Instant::now();
        if !pace.allows(reason, now) {
            return;
        }
        pace.begin(reason, now);
        match self.fetcher.keys().await {
            Ok(keys) => {
                pace.succeeded();
                tracing::info!(keys = keys.len(), "the issuer's key set was fetched");
                let mut current = self.keys.write().unwrap_or_else(PoisonError::into_inner);
                *current = Some(FetchedKeys {
                    keys: Arc::new(keys),
                    fetched_at: Instant::now(),
                });
            }
            Err(error) => {
                tracing::warn!("auth.jwt.jwks_url: the key set cannot be fetched: {error:#}");
            }
        }
    }

    fn fetched(&self) -> Option<FetchedKeys> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }
}
