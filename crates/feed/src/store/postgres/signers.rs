//! The public keys of signatures: few, and each in many signatures, so they are kept in memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio_postgres::types::Type;
use wakeline_store::Error;

use super::PostgresStore;

/// With more, all are forgotten and asked for again.
const MAX_SIGNERS: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Signers {
    known: Mutex<HashMap<i32, Arc<str>>>,
}

impl PostgresStore {
    /// The keys of these ids.
    pub(super) async fn signers(
        &self,
        ids: impl Iterator<Item = i32>,
    ) -> Result<HashMap<i32, Arc<str>>, Error> {
        let mut keys = HashMap::new();
        let mut strange = Vec::new();
        {
            let known = self.signers.known.lock();
            let known = known.unwrap_or_else(PoisonError::into_inner);
            for id in ids {
                match known.get(&id) {
                    Some(key) => drop(keys.insert(id, key.clone())),
                    None => strange.push(id),
                }
            }
        }
        if strange.is_empty() {
            return Ok(keys);
        }
        strange.sort_unstable();
        strange.dedup();
        let statement = "SELECT id, key FROM wakeline.feed_public_key WHERE id = ANY ($1)";
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 1] =
            [(&strange, Type::INT4_ARRAY)];
        let rows = self.ask("feed_signers", statement, &parameters).await?;
        let known = self.signers.known.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if known.len() + rows.len() > MAX_SIGNERS {
            known.clear();
        }
        for row in rows {
            let (id, key): (i32, Arc<str>) = (row.get(0), row.get::<_, &str>(1).into());
            known.insert(id, key.clone());
            keys.insert(id, key);
        }
        Ok(keys)
    }
}
