//! Users' keys on SQLite.

use rusqlite::{Connection, OptionalExtension};
use wakeline_bus::Write;

use super::SqliteStore;
use crate::store::{KeyPair, Keys, Principal, StoreFuture, silent};

impl Keys for SqliteStore {
    fn key(&self, of: Principal) -> StoreFuture<'_, Option<KeyPair>> {
        self.read("feed_key", move |connection, _| Ok(key(connection, &of)?))
    }

    fn store_key(&self, of: Principal, offered: KeyPair) -> Write<KeyPair> {
        silent(self.write("feed_store_key", move |connection, _| {
            if let Some(kept) = key(connection, &of)? {
                return Ok(kept);
            }
            let mut add = connection.prepare_cached(
                "INSERT INTO feed_user_key (provider, user_id, public_key, private_key)
                 VALUES (?1, ?2, ?3, ?4)",
            )?;
            add.execute((of.provider, of.id, &*offered.public, &*offered.private))?;
            Ok(offered)
        }))
    }
}

fn key(connection: &Connection, of: &Principal) -> rusqlite::Result<Option<KeyPair>> {
    let mut ask = connection.prepare_cached(
        "SELECT public_key, private_key FROM feed_user_key WHERE provider = ?1 AND user_id = ?2",
    )?;
    ask.query_row((&of.provider, &of.id), |row| {
        Ok(KeyPair {
            public: row.get::<_, String>("public_key")?.into(),
            private: row.get::<_, String>("private_key")?.into(),
        })
    })
    .optional()
}
