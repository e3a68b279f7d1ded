//! The leases that this process holds: what they are on, and until when they certainly last.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use uuid::Uuid;
use wakeline_wake::{Engine, TimerId, Wake};

use crate::cache::Edition;

/// A token as the runtime sees it names what it is on, so that it is looked up by its key.
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

/// What this process knew of an instance's history when it took the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Not all of it: it could not be read.
    Nothing,
    /// There is none yet.
    New,
    Edition(Edition),
}

#[derive(Debug)]
struct Lease {
    known: Known,
    /// Measured from when the answer came: the database's own end is earlier.
    ends: Instant,
    /// Wakes somebody of this process when it ends.
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

    /// Taken: from now it lasts for `time`, and `wake` is due when it is over.
    pub(crate) fn take(&self, engine: &Engine, secret: Uuid, time: Duration, wake: Wake) {
        let lease = Lease {
            known: Known::Nothing,
            ends: Instant::now() + time,
            timer: engine.wake_after(wake.clone(), time),
            wake,
        };
        self.lock().insert(secret, lease);
    }

    pub(crate) fn prolong(&self, engine: &Engine, secret: Uuid, time: Duration) {
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

    pub(crate) fn know(&self, secret: Uuid, known: Known) {
        if let Some(lease) = self.lock().get_mut(&secret) {
            lease.known = known;
        }
    }

    pub(crate) fn known(&self, secret: Uuid) -> Known {
        self.lock()
            .get(&secret)
            .map_or(Known::Nothing, |lease| lease.known)
    }

    pub(crate) fn end(&self, engine: &Engine, secret: Uuid) {
        let before = self.lock().remove(&secret);
        if let Some(timer) = before.and_then(|lease| lease.timer) {
            engine.cancel(timer);
        }
    }

    /// When it is certainly over.
    pub(crate) fn ends(&self, secret: Uuid) -> Option<Instant> {
        self.lock().get(&secret).map(|lease| lease.ends)
    }

    /// Forgets what has been over for a while: its holder never said a word.
    pub(crate) fn tidy(&self) {
        const FORGOTTEN: Duration = Duration::from_secs(60);
        let now = Instant::now();
        self.lock().retain(|_, lease| lease.ends + FORGOTTEN > now);
    }
}
