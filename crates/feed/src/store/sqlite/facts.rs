//! Facts on SQLite.

use std::{collections::HashMap, sync::Arc};

use futures_util::FutureExt;
use rusqlite::{Connection, OptionalExtension};
use wakeline_bus::Write;

use super::{SqliteStore, log, names::names_of, save};
use crate::{
    fact::{Envelope, Reference, Signature},
    store::{
        Facts, Horizon, Log, SaveOutcome, Seq, StoreFuture, StoredFact,
        names::NameTables,
        rows::{FactRow, read_facts},
        saving,
    },
};

impl Facts for SqliteStore {
    fn save(&self, envelopes: Arc<[Envelope]>) -> Write<SaveOutcome> {
        let store = self.clone();
        saving(async move {
            let prepared = store.prepare(&envelopes).await?;
            let save = store.write("feed_save", move |connection, now| {
                save::save(connection, &prepared, now)
            });
            save.await
        })
    }

    fn find(&self, references: Vec<Reference>) -> StoreFuture<'_, Vec<Option<Seq>>> {
        async move {
            let kinds = references.iter().map(|one| one.kind.clone()).collect();
            let ids = self.ids(kinds, Vec::new()).await?;
            self.read("feed_find", move |connection, _| {
                let mut find = save::find(connection)?;
                let find = |one: &Reference| match ids.kinds.get(&one.kind) {
                    Some(kind) => Ok(find
                        .query_row((&one.hash.0[..], kind), |row| row.get("seq"))
                        .optional()?),
                    None => Ok(None),
                };
                references.iter().map(find).collect()
            })
            .await
        }
        .boxed()
    }

    fn closure(&self, of: Vec<Seq>) -> StoreFuture<'_, Vec<Seq>> {
        self.read("feed_closure", move |connection, _| {
            let mut ask = connection.prepare_cached(
                "WITH RECURSIVE up (seq) AS (
                     SELECT value FROM json_each(?1)
                     UNION
                     SELECT e.predecessor FROM up
                     CROSS JOIN feed_edge e ON e.successor = up.seq
                 )
                 SELECT seq FROM up ORDER BY seq",
            )?;
            let of = serde_json::to_string(&of).expect("numbers are JSON");
            let rows = ask.query_map([of], |row| row.get("seq"))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn facts(&self, at: Vec<Seq>) -> StoreFuture<'_, Vec<StoredFact>> {
        self.read("feed_facts", move |connection, names| {
            let mut keys = HashMap::new();
            let mut rows = Vec::with_capacity(at.len());
            for seq in at {
                rows.extend(row(connection, seq, &mut keys)?);
            }
            let kinds = rows.iter().map(|row| row.kind);
            let names = names_of(connection, names, kinds, std::iter::empty())?;
            read_facts(rows, &names)
        })
    }

    fn horizon(&self) -> StoreFuture<'_, Horizon> {
        self.read("feed_horizon", |connection, _| {
            // With one writer everything that is committed is settled.
            let last = save::last_value(connection)?;
            Ok(Horizon {
                settled: last,
                last,
            })
        })
    }

    fn log(&self, after: Seq, limit: usize) -> StoreFuture<'_, Log> {
        self.read("feed_log", move |connection, names| {
            log::log(connection, names, after, limit)
        })
    }
}

fn row(
    connection: &Connection,
    seq: Seq,
    keys: &mut HashMap<i64, Arc<str>>,
) -> rusqlite::Result<Option<FactRow>> {
    let mut select = connection.prepare_cached(
        "SELECT type_id, hash, fields, predecessors, saved_at FROM feed_fact WHERE seq = ?1",
    )?;
    let row = select.query_row([seq], |row| {
        Ok(FactRow {
            seq,
            kind: row.get("type_id")?,
            hash: row.get("hash")?,
            fields: row.get("fields")?,
            predecessors: row.get("predecessors")?,
            saved_at: row.get("saved_at")?,
            signatures: signatures(connection, seq, keys)?,
        })
    });
    row.optional()
}

fn signatures(
    connection: &Connection,
    seq: Seq,
    keys: &mut HashMap<i64, Arc<str>>,
) -> rusqlite::Result<Vec<Signature>> {
    let mut ask = connection.prepare_cached(
        "SELECT key_id, signature FROM feed_signature WHERE seq = ?1 ORDER BY key_id",
    )?;
    let mut rows = ask.query([seq])?;
    let mut signatures = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get("key_id")?;
        let key = match keys.get(&id) {
            Some(key) => key.clone(),
            None => {
                let sql = "SELECT key FROM feed_public_key WHERE id = ?1";
                let mut ask = connection.prepare_cached(sql)?;
                let key: Arc<str> = ask
                    .query_row([id], |row| row.get::<_, String>("key"))?
                    .into();
                keys.insert(id, key.clone());
                key
            }
        };
        let signature = row.get::<_, String>("signature")?.into();
        signatures.push(Signature { key, signature });
    }
    Ok(signatures)
}
