//! The leases that this process holds, and until when they certainly last.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use uuid::Uuid;
use wakeline_wake::{Engine, TimerId, Wake};

use super::cache::HistoryVersion;

/// The lock token that the runtime gets. It names the leased row, so that the row is found by its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token<K> {
    pub(crate) secret: Uuid,
    pub(crate) key: K,
}

impl<K: std::str::FromStr> Token<K> {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (secret, key) = text.split_once('.')?;
        Some(Self {
            secret: Uuid::parse_str(secret).ok()?,
            key: key.parse().ok()?,
        })
    }
}

impl<K: std::fmt::Display> std::fmt::Display for Token<K> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}", self.secret.simple(), self.key)
    }
}

/// The history that was fetched with a leased instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchedHistory {
    /// The history could not be read, or the lease is on an activity.
    Unknown,
    /// The instance has no history yet.
    New,
    Version(HistoryVersion),
}

#[derive(Debug)]
struct Lease {
    history: FetchedHistory,
    /// Measured from when the answer came: the lease ends earlier in the database.
    ends: Instant,
    /// For a dispatcher of this process, when the lease ends.
    wake: Wake,
    timer: Option<TimerId>,
}

#[derive(Debug, Default)]
pub(crate) struct Leases {
    held: Mutex<HashMap<Uuid, Lease>>,
}

impl Leases {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Uuid, Lease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a lease that lasts for `time`; then `wake` is published.
    pub(crate) fn add(&self, engine: &Engine, secret: Uuid, time: Duration, wake: Wake) {
        let lease = Lease {
            history: FetchedHistory::Unknown,
            ends: Instant::now() + time,
            timer: engine.wake_after(wake.clone(), time),
            wake,
        };
        self.lock().insert(secret, lease);
    }

    pub(crate) fn renew(&self, engine: &Engine, secret: Uuid, time: Duration) {
        let mut held = self.lock();
        let Some(lease) = held.get_mut(&secret) else {
            return;
        };
        lease.ends = Instant::now() + time;
        if let Some(timer) = lease.timer.take() {
            engine.cancel(timer);
        }
        lease.timer = engine.wake_after(lease.wake.clone(), time);
    }

    pub(crate) fn set_history(&self, secret: Uuid, history: FetchedHistory) {
        if let Some(lease) = self.lock().get_mut(&secret) {
            lease.history = history;
        }
    }

    pub(crate) fn history(&self, secret: Uuid) -> FetchedHistory {
        self.lock()
            .get(&secret)
            .map_or(FetchedHistory::Unknown, |lease| lease.history)
    }

    pub(crate) fn remove(&self, engine: &Engine, secret: Uuid) {
        let removed = self.lock().remove(&secret);
        if let Some(timer) = removed.and_then(|lease| lease.timer) {
            engine.cancel(timer);
        }
    }

    /// When the lease has certainly ended.
    pub(crate) fn ends(&self, secret: Uuid) -> Option<Instant> {
        self.lock().get(&secret).map(|lease| lease.ends)
    }

    /// Removes leases that ended a minute ago: their holders have never acknowledged or released
    /// them.
    pub(crate) fn remove_expired(&self) {
        const KEPT: Duration = Duration::from_secs(60);
        let now = Instant::now();
        self.lock().retain(|_, lease| lease.ends + KEPT > now);
    }
}
