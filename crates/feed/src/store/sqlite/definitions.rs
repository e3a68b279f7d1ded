//! Definitions of feeds on SQLite.

use rusqlite::{Connection, OptionalExtension};
use wakeline_bus::Write;

use super::SqliteStore;
use crate::store::{
    Definition, Definitions, REFRESHED_AFTER, StoreFuture, StoredDefinition,
    rows::{definition_texts, read_definition},
    silent,
};

const INSERT: &str = "INSERT INTO feed_definition (hash, text, given, owner, used_at)
    VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (hash) DO UPDATE SET used_at = excluded.used_at WHERE used_at < ?6";

impl Definitions for SqliteStore {
    fn define(&self, definitions: Vec<Definition>) -> Write<()> {
        let store = self.clone();
        silent(async move {
            let hashes: Vec<_> = definitions.iter().map(|one| one.hash.clone()).collect();
            let due = (store.clock)() - REFRESHED_AFTER;
            let is_fresh = store.read("feed_defined", move |connection, _| {
                for hash in &hashes {
                    if used_at(connection, hash)?.is_none_or(|used_at| used_at < due) {
                        return Ok(false);
                    }
                }
                Ok(true)
            });
            if is_fresh.await? {
                return Ok(());
            }
            let define = store.write("feed_define", move |connection, now| {
                let mut insert = connection.prepare_cached(INSERT)?;
                for one in &definitions {
                    let (given, owner) = definition_texts(one);
                    let due = now - REFRESHED_AFTER;
                    insert.execute((&*one.hash, &*one.text, given, owner, now, due))?;
                }
                Ok(())
            });
            define.await
        })
    }

    fn definition(&self, hash: String) -> StoreFuture<'_, Option<StoredDefinition>> {
        let due = (self.clock)() - REFRESHED_AFTER;
        self.read("feed_definition", move |connection, _| {
            let mut select = connection.prepare_cached(
                "SELECT text, given, owner, used_at FROM feed_definition WHERE hash = ?1",
            )?;
            let row = select.query_row([&hash], |row| {
                let used_at: i64 = row.get("used_at")?;
                let text: String = row.get("text")?;
                let given: String = row.get("given")?;
                let owner: Option<String> = row.get("owner")?;
                Ok((used_at, text, given, owner))
            });
            let Some((used_at, text, given, owner)) = row.optional()? else {
                return Ok(None);
            };
            Ok(Some(StoredDefinition {
                definition: read_definition(hash, text, &given, owner.as_deref())?,
                is_stale: used_at < due,
            }))
        })
    }

    fn refresh_definition(&self, hash: String) -> Write<()> {
        silent(self.write("feed_refresh", move |connection, now| {
            let sql = "UPDATE feed_definition SET used_at = ?1 WHERE hash = ?2 AND used_at < ?3";
            let mut update = connection.prepare_cached(sql)?;
            update.execute((now, hash, now - REFRESHED_AFTER))?;
            Ok(())
        }))
    }

    fn forget_definitions(&self, since: i64) -> Write<u64> {
        silent(self.write("feed_forget", move |connection, _| {
            let sql = "DELETE FROM feed_definition WHERE used_at < ?1";
            let removed = connection.prepare_cached(sql)?.execute([since])?;
            Ok(removed as u64)
        }))
    }
}

fn used_at(connection: &Connection, hash: &str) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT used_at FROM feed_definition WHERE hash = ?1";
    let mut select = connection.prepare_cached(sql)?;
    select
        .query_row([hash], |row| row.get("used_at"))
        .optional()
}
