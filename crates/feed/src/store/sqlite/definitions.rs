//! Definitions of feeds on SQLite.

use rusqlite::{Connection, OptionalExtension};
use wakeline_bus::Write;

use super::SqliteStore;
use crate::store::{
    Definition, Definitions, REFRESHED_AFTER, Step, StoredDefinition, silent, text,
};

const ADD: &str = "INSERT INTO feed_definition (hash, text, given, owner, used)
    VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (hash) DO UPDATE SET used = excluded.used WHERE used < ?6";

impl Definitions for SqliteStore {
    fn define(&self, definitions: Vec<Definition>) -> Write<()> {
        let store = self.clone();
        silent(async move {
            let hashes: Vec<_> = definitions.iter().map(|one| one.hash.clone()).collect();
            let due = (store.clock)() - REFRESHED_AFTER;
            let is_known = store.read("feed_defined", move |connection, _| {
                for hash in &hashes {
                    if used(connection, hash)?.is_none_or(|used| used < due) {
                        return Ok(false);
                    }
                }
                Ok(true)
            });
            if is_known.await? {
                return Ok(());
            }
            let define = store.write("feed_define", move |connection, now| {
                let mut add = connection.prepare_cached(ADD)?;
                for one in &definitions {
                    let given = text::write_references(&one.given);
                    let owner = one.owner.as_ref().map(std::slice::from_ref);
                    let owner = owner.map(text::write_references);
                    let due = now - REFRESHED_AFTER;
                    add.execute((&*one.hash, &*one.text, given, owner, now, due))?;
                }
                Ok(())
            });
            define.await
        })
    }

    fn definition(&self, hash: String) -> Step<'_, Option<StoredDefinition>> {
        let due = (self.clock)() - REFRESHED_AFTER;
        self.read("feed_definition", move |connection, names| {
            let mut ask = connection.prepare_cached(
                "SELECT text, given, owner, used FROM feed_definition WHERE hash = ?1",
            )?;
            let row = ask.query_row([&hash], |row| {
                let text: String = row.get("text")?;
                let given: String = row.get("given")?;
                let owner: Option<String> = row.get("owner")?;
                Ok((text, given, owner, row.get::<_, i64>("used")?))
            });
            let Some((text, given, owner, used)) = row.optional()? else {
                return Ok(None);
            };
            let definition = Definition {
                hash: hash.into(),
                text: text.into(),
                given: text::read_references(&given, &names.known())?,
                owner: text::read_owner(owner.as_deref(), &names.known())?,
            };
            Ok(Some(StoredDefinition {
                definition,
                is_stale: used < due,
            }))
        })
    }

    fn refresh_definition(&self, hash: String) -> Write<()> {
        silent(self.write("feed_refresh", move |connection, now| {
            let sql = "UPDATE feed_definition SET used = ?1 WHERE hash = ?2 AND used < ?3";
            let mut refresh = connection.prepare_cached(sql)?;
            refresh.execute((now, hash, now - REFRESHED_AFTER))?;
            Ok(())
        }))
    }

    fn forget_definitions(&self, since: i64) -> Write<u64> {
        silent(self.write("feed_forget", move |connection, _| {
            let sql = "DELETE FROM feed_definition WHERE used < ?1";
            let gone = connection.prepare_cached(sql)?.execute([since])?;
            Ok(gone as u64)
        }))
    }
}

fn used(connection: &Connection, hash: &str) -> rusqlite::Result<Option<i64>> {
    let mut ask = connection.prepare_cached("SELECT used FROM feed_definition WHERE hash = ?1")?;
    ask.query_row([hash], |row| row.get(0)).optional()
}
