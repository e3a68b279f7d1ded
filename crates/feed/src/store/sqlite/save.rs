//! Saving on SQLite: everything is looked up before anything is written, so a refused save has
//! written nothing.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension};
use sha2::{Digest, Sha256};

use crate::{
    fact::{Envelope, Hash},
    store::{
        SaveOutcome, Seq,
        prepared::{PreparedEdge, PreparedFact, PreparedSave, edge_reference},
    },
};

/// A turn of the writer.
pub(super) fn save(
    connection: &Connection,
    prepared: &PreparedSave,
    now: i64,
) -> rusqlite::Result<SaveOutcome> {
    let last = last_value(connection)?;
    let plan = match plan(connection, prepared, last)? {
        Ok(plan) => plan,
        Err(refused) => return Ok(refused),
    };
    insert(connection, prepared, &plan, now)?;
    sign(connection, prepared, &plan.at)?;
    Ok(SaveOutcome::Stored { new: plan.new })
}

/// The last seq that was given.
pub(super) fn last_value(connection: &Connection) -> rusqlite::Result<Seq> {
    let mut last = connection.prepare_cached("SELECT last_value FROM feed_seq")?;
    last.query_row([], |row| row.get("last_value"))
}

pub(super) fn find(connection: &Connection) -> rusqlite::Result<CachedStatement<'_>> {
    connection.prepare_cached("SELECT seq FROM feed_fact WHERE hash = ?1 AND type_id = ?2")
}

#[derive(Default)]
struct SavePlan {
    /// Of every envelope.
    at: Vec<Seq>,
    new: Vec<(usize, Seq)>,
    /// Predecessor, role, successor.
    edges: Vec<(Seq, i32, Seq)>,
}

fn plan(
    connection: &Connection,
    prepared: &PreparedSave,
    last: Seq,
) -> rusqlite::Result<Result<SavePlan, SaveOutcome>> {
    let mut lookups = FactLookups {
        select: find(connection)?,
        found: HashMap::new(),
    };
    let mut plan = SavePlan::default();
    let mut next = last;
    for (place, (envelope, fact)) in pairs(prepared).enumerate() {
        let hash = &envelope.fact.reference.hash;
        if let Some(at) = lookups.find(fact.kind, *hash)? {
            plan.at.push(at);
            continue;
        }
        next += 1;
        let mut missing: Option<&PreparedEdge> = None;
        for edge in &fact.edges {
            let predecessor = match edge.kind {
                Some(kind) => lookups.find(kind, edge.hash)?,
                None => None,
            };
            match predecessor {
                Some(predecessor) => plan.edges.push((predecessor, edge.role, next)),
                None if missing.is_none_or(|first| edge.index < first.index) => {
                    missing = Some(edge);
                }
                None => {}
            }
        }
        if let Some(edge) = missing {
            let predecessor = edge_reference(&envelope.fact, edge);
            return Ok(Err(SaveOutcome::Missing { predecessor }));
        }
        lookups.found.insert((fact.kind, *hash), Some(next));
        plan.at.push(next);
        plan.new.push((place, next));
    }
    Ok(Ok(plan))
}

/// Each fact is looked up once.
struct FactLookups<'c> {
    select: CachedStatement<'c>,
    found: HashMap<(i32, Hash), Option<Seq>>,
}

impl FactLookups<'_> {
    fn find(&mut self, kind: i32, hash: Hash) -> rusqlite::Result<Option<Seq>> {
        if let Some(&known) = self.found.get(&(kind, hash)) {
            return Ok(known);
        }
        let at = self
            .select
            .query_row((&hash.0[..], kind), |row| row.get("seq"));
        let at = at.optional()?;
        self.found.insert((kind, hash), at);
        Ok(at)
    }
}

fn insert(
    connection: &Connection,
    prepared: &PreparedSave,
    plan: &SavePlan,
    now: i64,
) -> rusqlite::Result<()> {
    let Some(&(_, last)) = plan.new.last() else {
        return Ok(());
    };
    let mut add = connection.prepare_cached(
        "INSERT INTO feed_fact (seq, type_id, hash, fields, predecessors, saved_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for &(place, at) in &plan.new {
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
    for &edge in &plan.edges {
        add.execute(edge)?;
    }
    let mut given = connection.prepare_cached("UPDATE feed_seq SET last_value = ?1")?;
    given.execute([last])?;
    Ok(())
}

fn sign(connection: &Connection, prepared: &PreparedSave, at: &[Seq]) -> rusqlite::Result<()> {
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
                "INSERT INTO feed_signature (seq, key_id, signature) VALUES (?1, ?2, ?3)
                 ON CONFLICT DO NOTHING",
            )?;
            add.execute((at, key, &*signature.signature))?;
        }
    }
    Ok(())
}

fn key_id(connection: &Connection, key: &str) -> rusqlite::Result<i64> {
    let digest: [u8; 32] = Sha256::digest(key).into();
    let mut select =
        connection.prepare_cached("SELECT id FROM feed_public_key WHERE digest = ?1")?;
    if let Some(id) = select
        .query_row([&digest[..]], |row| row.get("id"))
        .optional()?
    {
        return Ok(id);
    }
    let sql = "INSERT INTO feed_public_key (digest, key) VALUES (?1, ?2) RETURNING id";
    let mut add = connection.prepare_cached(sql)?;
    add.query_row((&digest[..], key), |row| row.get("id"))
}

fn pairs(prepared: &PreparedSave) -> impl Iterator<Item = (&Envelope, &PreparedFact)> {
    prepared.envelopes.iter().zip(&*prepared.facts)
}
