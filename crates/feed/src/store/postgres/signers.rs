//! The public keys of signatures: few, and each in many signatures, so they are kept in memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use wakeline_store::Error;

use super::PostgresStore;

/// With more, all are forgotten and read again.
const MAX_KEYS: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct SignerKeys {
    by_id: Mutex<HashMap<i32, Arc<str>>>,
}

impl PostgresStore {
    pub(super) async fn signer_keys(
        &self,
        ids: impl Iterator<Item = i32>,
    ) -> Result<HashMap<i32, Arc<str>>, Error> {
        let mut keys = HashMap::new();
        let mut missing = Vec::new();
        {
            let cached = self.signers.by_id.lock();
            let cached = cached.unwrap_or_else(PoisonError::into_inner);
            for id in ids {
                match cached.get(&id) {
                    Some(key) => drop(keys.insert(id, key.clone())),
                    None => missing.push(id),
                }
            }
        }
        if missing.is_empty() {
            return Ok(keys);
        }
        missing.sort_unstable();
        missing.dedup();
        let statement = "SELECT id, key AS text FROM wakeline.feed_public_key WHERE id = ANY ($1)";
        let read = self.texts("feed_signers", statement, &missing).await?;
        let cached = self.signers.by_id.lock();
        let mut cached = cached.unwrap_or_else(PoisonError::into_inner);
        if cached.len() + read.len() > MAX_KEYS {
            cached.clear();
        }
        cached.extend(read.iter().map(|(id, key)| (*id, key.clone())));
        keys.extend(read);
        Ok(keys)
    }
}
