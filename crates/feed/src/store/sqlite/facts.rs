//! Facts on SQLite.

use std::{collections::HashMap, sync::Arc};

use futures_util::FutureExt;
use rusqlite::{Connection, OptionalExtension};
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{SqliteStore, log, names::called, save};
use crate::{
    fact::{Envelope, Fact, Hash, Reference, Signature},
    store::{Facts, Horizon, Log, Position, Saved, Step, Stored, saving, text},
};

impl Facts for SqliteStore {
    fn save(&self, envelopes: Arc<[Envelope]>) -> Write<Saved> {
        let store = self.clone();
        saving(async move {
            let prepared = store.prepare(&envelopes).await?;
            let save = store.write("feed_save", move |connection, now| {
                save::save(connection, &prepared, now)
            });
            save.await
        })
    }

    fn find(&self, references: Vec<Reference>) -> Step<'_, Vec<Option<Position>>> {
        async move {
            let kinds = references.iter().map(|one| one.kind.clone()).collect();
            let ids = self.ids(kinds, Vec::new()).await?;
            self.read("feed_find", move |connection, _| {
                let mut look = save::look(connection)?;
                let find = |one: &Reference| match ids.kinds.get(&one.kind) {
                    Some(kind) => Ok(look
                        .query_row((&one.hash.0[..], kind), |row| row.get(0))
                        .optional()?),
                    None => Ok(None),
                };
                references.iter().map(find).collect()
            })
            .await
        }
        .boxed()
    }

    fn closure(&self, of: Vec<Position>) -> Step<'_, Vec<Position>> {
        self.read("feed_closure", move |connection, _| {
            let mut ask = connection.prepare_cached(
                "WITH RECURSIVE up (position) AS (
                     SELECT value FROM json_each(?1)
                     UNION
                     SELECT e.predecessor FROM up
                     CROSS JOIN feed_edge e ON e.successor = up.position
                 )
                 SELECT position FROM up ORDER BY position",
            )?;
            let of = serde_json::to_string(&of).expect("numbers are JSON");
            let rows = ask.query_map([of], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn facts(&self, at: Vec<Position>) -> Step<'_, Vec<Stored>> {
        self.read("feed_facts", move |connection, names| {
            let mut kept = Vec::with_capacity(at.len());
            for position in at {
                kept.extend(row(connection, position)?);
            }
            let kinds = kept.iter().map(|kept| kept.kind);
            let called = called(connection, names, kinds, std::iter::empty())?;
            let known = names.known();
            let mut keys = HashMap::new();
            let stored = kept.into_iter().map(|kept| {
                Ok(Stored {
                    position: kept.position,
                    signatures: signatures(connection, kept.position, &mut keys)?,
                    fact: Fact {
                        reference: Reference {
                            kind: called.kind(kept.kind)?,
                            hash: Hash(kept.hash),
                        },
                        predecessors: text::read_predecessors(&kept.predecessors, &known)?,
                        fields: kept.fields.into(),
                    },
                    learned: kept.learned,
                })
            });
            stored.collect()
        })
    }

    fn horizon(&self) -> Step<'_, Horizon> {
        self.read("feed_horizon", |connection, _| {
            // With one writer nothing is under way behind what is committed.
            let last = save::last_value(connection)?;
            Ok(Horizon {
                settled: last,
                last,
            })
        })
    }

    fn log(&self, after: Position, limit: usize) -> Step<'_, Log> {
        self.read("feed_log", move |connection, names| {
            log::log(connection, names, after, limit)
        })
    }
}

struct Kept {
    position: Position,
    kind: i32,
    hash: [u8; 64],
    fields: String,
    predecessors: String,
    learned: i64,
}

fn row(connection: &Connection, position: Position) -> rusqlite::Result<Option<Kept>> {
    let mut ask = connection.prepare_cached(
        "SELECT type_id, hash, fields, predecessors, learned FROM feed_fact WHERE position = ?1",
    )?;
    ask.query_row([position], |row| {
        Ok(Kept {
            position,
            kind: row.get(0)?,
            hash: row.get(1)?,
            fields: row.get(2)?,
            predecessors: row.get(3)?,
            learned: row.get(4)?,
        })
    })
    .optional()
}

fn signatures(
    connection: &Connection,
    position: Position,
    keys: &mut HashMap<i64, Arc<str>>,
) -> Result<Vec<Signature>, Error> {
    let mut ask = connection.prepare_cached(
        "SELECT key_id, signature FROM feed_signature WHERE position = ?1 ORDER BY key_id",
    )?;
    let mut rows = ask.query([position])?;
    let mut signatures = Vec::new();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let key = match keys.get(&id) {
            Some(key) => key.clone(),
            None => {
                let sql = "SELECT key FROM feed_public_key WHERE id = ?1";
                let mut ask = connection.prepare_cached(sql)?;
                let key: Arc<str> = ask.query_row([id], |row| row.get::<_, String>(0))?.into();
                keys.insert(id, key.clone());
                key
            }
        };
        let signature = row.get::<_, String>(1)?.into();
        signatures.push(Signature { key, signature });
    }
    Ok(signatures)
}
