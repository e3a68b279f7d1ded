//! Saving on SQLite: first everything is looked up, so that a save that is refused has written
//! nothing.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use rusqlite::{CachedStatement, Connection, OptionalExtension};
use sha2::{Digest, Sha256};
use wakeline_store::Error;

use super::SqliteStore;
use crate::{
    fact::{Envelope, Hash, Kind},
    store::{
        Position, Saved,
        prepared::{MAX_LOOKS, Prepared, PreparedEdge, PreparedFact, referred},
    },
};

impl SqliteStore {
    pub(super) async fn prepare(&self, envelopes: &Arc<[Envelope]>) -> Result<Prepared, Error> {
        let mut absent: HashSet<Kind> = HashSet::new();
        for _ in 0..MAX_LOOKS {
            let known = self.names.known();
            match Prepared::new(envelopes, &known, &absent) {
                Ok(prepared) => return Ok(prepared),
                Err(lacking) => {
                    let predecessors: Vec<Kind> = lacking.predecessors.into_iter().collect();
                    let found = self.ids(predecessors.clone(), Vec::new()).await?;
                    let strange = |kind: &Kind| !found.kinds.contains_key(kind);
                    absent.extend(predecessors.into_iter().filter(strange));
                    let kinds = lacking.kinds.into_iter().collect();
                    let roles = lacking.roles.into_iter().collect();
                    self.make_ids(kinds, roles).await?;
                }
            }
        }
        Err(Error::Failed("a save has too many names of types".into()))
    }
}

/// A turn of the writer.
pub(super) fn save(
    connection: &Connection,
    prepared: &Prepared,
    now: i64,
) -> rusqlite::Result<Saved> {
    let last = last_value(connection)?;
    let decided = match decide(connection, prepared, last)? {
        Ok(decided) => decided,
        Err(refused) => return Ok(refused),
    };
    insert(connection, prepared, &decided, now)?;
    sign(connection, prepared, &decided.at)?;
    Ok(Saved::Stored { new: decided.new })
}

/// The last position that was given.
pub(super) fn last_value(connection: &Connection) -> rusqlite::Result<Position> {
    let mut last = connection.prepare_cached("SELECT last_value FROM feed_position")?;
    last.query_row([], |row| row.get(0))
}

pub(super) fn look(connection: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    connection.prepare_cached("SELECT position FROM feed_fact WHERE hash = ?1 AND type_id = ?2")
}

#[derive(Default)]
struct Decided {
    /// Of every envelope.
    at: Vec<Position>,
    new: Vec<(usize, Position)>,
    /// Predecessor, role, successor.
    edges: Vec<(Position, i32, Position)>,
}

fn decide(
    connection: &Connection,
    prepared: &Prepared,
    last: Position,
) -> rusqlite::Result<Result<Decided, Saved>> {
    let mut seen = Seen {
        look: look(connection)?,
        found: HashMap::new(),
    };
    let mut decided = Decided::default();
    let mut next = last;
    for (place, (envelope, fact)) in pairs(prepared).enumerate() {
        let hash = &envelope.fact.reference.hash;
        if let Some(at) = seen.find(fact.kind, *hash)? {
            decided.at.push(at);
            continue;
        }
        next += 1;
        let mut missing: Option<&PreparedEdge> = None;
        for edge in &fact.edges {
            let predecessor = match edge.kind {
                Some(kind) => seen.find(kind, edge.hash)?,
                None => None,
            };
            match predecessor {
                Some(predecessor) => decided.edges.push((predecessor, edge.role, next)),
                None if missing.is_none_or(|first| edge.place < first.place) => {
                    missing = Some(edge);
                }
                None => {}
            }
        }
        if let Some(edge) = missing {
            let predecessor = referred(&envelope.fact, edge);
            return Ok(Err(Saved::Missing { predecessor }));
        }
        seen.found.insert((fact.kind, *hash), Some(next));
        decided.at.push(next);
        decided.new.push((place, next));
    }
    Ok(Ok(decided))
}

/// Each fact is looked for once.
struct Seen<'c> {
    look: CachedStatement<'c>,
    found: HashMap<(i32, Hash), Option<Position>>,
}

impl Seen<'_> {
    fn find(&mut self, kind: i32, hash: Hash) -> rusqlite::Result<Option<Position>> {
        if let Some(&known) = self.found.get(&(kind, hash)) {
            return Ok(known);
        }
        let at = self.look.query_row((&hash.0[..], kind), |row| row.get(0));
        let at = at.optional()?;
        self.found.insert((kind, hash), at);
        Ok(at)
    }
}

fn insert(
    connection: &Connection,
    prepared: &Prepared,
    decided: &Decided,
    now: i64,
) -> rusqlite::Result<()> {
    let Some(&(_, last)) = decided.new.last() else {
        return Ok(());
    };
    let mut add = connection.prepare_cached(
        "INSERT INTO feed_fact (position, type_id, hash, fields, predecessors, learned)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for &(place, at) in &decided.new {
        let (fact, ready) = (&prepared.envelopes[place].fact, &prepared.facts[place]);
        let hash = &fact.reference.hash.0[..];
        add.execute((
            at,
            ready.kind,
            hash,
            &*fact.fields,
            &ready.predecessors,
            now,
        ))?;
    }
    let sql = "INSERT INTO feed_edge (predecessor, role_id, successor) VALUES (?1, ?2, ?3)";
    let mut add = connection.prepare_cached(sql)?;
    for &edge in &decided.edges {
        add.execute(edge)?;
    }
    let mut given = connection.prepare_cached("UPDATE feed_position SET last_value = ?1")?;
    given.execute([last])?;
    Ok(())
}

fn sign(connection: &Connection, prepared: &Prepared, at: &[Position]) -> rusqlite::Result<()> {
    let mut keys: HashMap<&str, i64> = HashMap::new();
    for (envelope, at) in prepared.envelopes.iter().zip(at) {
        for signature in &envelope.signatures {
            let key = match keys.get(&*signature.key) {
                Some(&known) => known,
                None => {
                    let id = key_id(connection, &signature.key)?;
                    keys.insert(&signature.key, id);
                    id
                }
            };
            let mut add = connection.prepare_cached(
                "INSERT INTO feed_signature (position, key_id, signature) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO NOTHING",
            )?;
            add.execute((at, key, &*signature.signature))?;
        }
    }
    Ok(())
}

fn key_id(connection: &Connection, key: &str) -> rusqlite::Result<i64> {
    let digest: [u8; 32] = Sha256::digest(key).into();
    let mut look = connection.prepare_cached("SELECT id FROM feed_public_key WHERE digest = ?1")?;
    if let Some(id) = look.query_row([&digest[..]], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    let sql = "INSERT INTO feed_public_key (digest, key) VALUES (?1, ?2) RETURNING id";
    let mut add = connection.prepare_cached(sql)?;
    add.query_row((&digest[..], key), |row| row.get(0))
}

fn pairs(prepared: &Prepared) -> impl Iterator<Item = (&Envelope, &PreparedFact)> {
    prepared.envelopes.iter().zip(&*prepared.facts)
}
