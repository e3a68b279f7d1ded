//! The issuer's key set: fetched when it is first needed, kept, and fetched anew when it is old or
//! a token names a key that is not in it.

mod fetch;
mod pace;

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::sync::Mutex;

use super::key::Key;
use crate::config;
use fetch::Fetch;
use pace::{Pace, Why};

#[derive(Debug)]
pub(crate) struct Jwks {
    fetch: Fetch,
    refresh: Duration,
    known: RwLock<Option<Known>>,
    /// Held while it is fetched, so that all who need it wait for one answer.
    pace: Mutex<Pace>,
}

#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) keys: Arc<Vec<Key>>,
    /// Tells one set from the next.
    pub(super) since: Instant,
}

impl Jwks {
    pub(super) fn new(url: &config::Url, config: &config::Jwt) -> Result<Arc<Self>> {
        Self::at(url.expose(), config.jwks_timeout, config.jwks_refresh)
    }

    /// A key set that somebody else than `auth.jwt` names.
    pub(crate) fn at(url: &str, timeout: Duration, refresh: Duration) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            fetch: Fetch::new(url, timeout)?,
            refresh,
            known: RwLock::new(None),
            pace: Mutex::new(Pace::default()),
        }))
    }

    /// The keys at hand. Old ones still serve, while they are fetched anew behind the scenes.
    pub(super) fn known(self: &Arc<Self>) -> Option<Known> {
        let known = self.at_hand()?;
        let since = known.since;
        if since.elapsed() >= self.refresh && self.may_refresh() {
            let jwks = self.clone();
            tokio::spawn(async move { jwks.look(Why::Old, Some(since)).await });
        }
        Some(known)
    }

    /// Not while somebody is at it, nor right after a failure.
    /// Modulus and exponent of the RSA key of this name, if the set is at hand and has it.
    pub(crate) fn rsa(self: &Arc<Self>, id: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let known = self.known()?;
        known.keys.iter().find_map(|key| key.rsa(id))
    }

    fn may_refresh(&self) -> bool {
        let pace = self.pace.try_lock();
        pace.is_ok_and(|pace| pace.allows(Why::Old, Instant::now()))
    }

    /// Whether there is any set afterwards; not whether it is a new one.
    pub(crate) async fn renew(&self) -> bool {
        let seen = self.at_hand().map(|known| known.since);
        let why = match seen {
            None => Why::Missing,
            Some(_) => Why::UnknownKey,
        };
        self.look(why, seen).await;
        self.at_hand().is_some()
    }

    async fn look(&self, why: Why, seen: Option<Instant>) {
        let mut pace = self.pace.lock().await;
        // Somebody else has fetched it while this one waited.
        if self.at_hand().map(|known| known.since) != seen {
            return;
        }
        let now = Instant::now();
        if !pace.allows(why, now) {
            return;
        }
        pace.begin(why, now);
        match self.fetch.keys().await {
            Ok(keys) => {
                pace.done();
                tracing::info!(keys = keys.len(), "the issuer's key set was fetched");
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                *known = Some(Known {
                    keys: Arc::new(keys),
                    since: Instant::now(),
                });
            }
            Err(error) => {
                tracing::warn!("auth.jwt.jwks_url: the key set cannot be fetched: {error:#}");
            }
        }
    }

    fn at_hand(&self) -> Option<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }
}
