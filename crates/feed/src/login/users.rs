//! Users as facts: each has a key pair here, made when it is first needed, and is the fact of the
//! public key.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{sync::Semaphore, task};
use wakeline_bus::Bus;

use crate::{
    fact::{Envelope, Fact, Kind, record::write_sent},
    json,
    signature::{self, Signer},
    store::{KeyPair, Principal, SaveOutcome, Store},
};

/// The type of users' facts.
pub const USER: &str = "Jinaga.User";

/// Users that are kept in memory; with more, all are forgotten and read again.
const MAX_KNOWN: usize = 10_000;
/// Keys that are made at once: each takes a processor for a while.
const MAX_MAKING: usize = 2;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] wakeline_store::Error),
    #[error("a key pair cannot be made: {0}")]
    Make(String),
    #[error("the key pair of {0:?} cannot be used")]
    Key(Principal),
}

/// A user, with what signs for them.
#[derive(Debug)]
pub struct User {
    pub fact: Fact,
    pub key: KeyPair,
    pub signer: Signer,
}

impl User {
    /// The body of the answer to `GET /login`.
    #[must_use]
    pub fn login_answer(&self, display_name: &str) -> String {
        let profile = serde_json::json!({ "displayName": display_name });
        let mut fact = String::new();
        write_sent(&mut fact, &self.fact);
        format!(r#"{{"userFact":{fact},"profile":{profile}}}"#)
    }
}

pub struct Users {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    cache: Mutex<HashMap<Principal, Arc<User>>>,
    making: Semaphore,
}

impl std::fmt::Debug for Users {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Users").finish_non_exhaustive()
    }
}

impl Users {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, bus: Arc<Bus>) -> Self {
        Self {
            store,
            bus,
            cache: Mutex::default(),
            making: Semaphore::new(MAX_MAKING),
        }
    }

    /// The user of a login. The first call makes and stores their key pair. When it returns, the
    /// user's fact is stored, and the streams whose feeds begin with it are woken. If several nodes
    /// do this at once, all get the key that was stored first.
    pub async fn of(&self, principal: &Principal) -> Result<Arc<User>, Error> {
        if let Some(user) = self.cached().get(principal) {
            return Ok(user.clone());
        }
        let key = match self.store.key(principal.clone()).await? {
            Some(key) => key,
            None => self.make(principal).await?,
        };
        let bad = || Error::Key(principal.clone());
        let user = Arc::new(User {
            fact: user_fact(&USER.into(), &key.public).ok_or_else(bad)?,
            signer: Signer::new(&key).map_err(|_| bad())?,
            key,
        });
        let envelope = Envelope::unsigned(user.fact.clone());
        let saved = self.store.save(vec![envelope].into());
        if let SaveOutcome::Missing { .. } = saved.commit(&self.bus).await? {
            return Err(bad());
        }
        let mut cache = self.cached();
        if cache.len() >= MAX_KNOWN {
            cache.clear();
        }
        cache.insert(principal.clone(), user.clone());
        Ok(user)
    }

    async fn make(&self, principal: &Principal) -> Result<KeyPair, Error> {
        let failed = |text: String| Error::Make(text);
        let _turn = self
            .making
            .acquire()
            .await
            .map_err(|error| failed(error.to_string()))?;
        // Another request of the same user may have made it meanwhile.
        if let Some(key) = self.store.key(principal.clone()).await? {
            return Ok(key);
        }
        let made = task::spawn_blocking(signature::generate).await;
        let made = made.map_err(|error| failed(error.to_string()))?;
        let made = made.map_err(|error| failed(error.to_string()))?;
        let kept = self.store.store_key(principal.clone(), made);
        Ok(kept.commit(&self.bus).await?)
    }

    fn cached(&self) -> std::sync::MutexGuard<'_, HashMap<Principal, Arc<User>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fact of the user with this public key.
pub(crate) fn user_fact(kind: &Kind, public_key: &str) -> Option<Fact> {
    let fields = serde_json::json!({ "publicKey": public_key }).to_string();
    let fields = json::parse(&fields).ok()?;
    Fact::new(kind.clone(), Vec::new(), &fields).ok()
}
