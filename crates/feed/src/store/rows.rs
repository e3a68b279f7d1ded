//! Rows of facts and of the log, as both databases read them.

use std::sync::Arc;

use wakeline_store::Error;

use super::{Definition, Log, LogEntry, Seq, StoredFact, names::NamesById};
use crate::fact::{
    Fact, Hash, InvalidFact, Kinds, Reference, Signature, read_predecessors, read_reference_list,
    write_reference_list,
};

pub(super) struct FactRow {
    pub(super) seq: Seq,
    pub(super) kind: i32,
    pub(super) hash: Vec<u8>,
    pub(super) fields: String,
    pub(super) predecessors: String,
    pub(super) saved_at: i64,
    pub(super) signatures: Vec<Signature>,
}

pub(super) fn read_facts(rows: Vec<FactRow>, names: &NamesById) -> Result<Vec<StoredFact>, Error> {
    let mut kinds = Kinds::default();
    let fact = |row: FactRow| {
        Ok(StoredFact {
            seq: row.seq,
            fact: Fact {
                reference: reference(names, row.kind, row.hash)?,
                predecessors: read_predecessors(&row.predecessors, &mut kinds)
                    .map_err(unreadable)?,
                fields: row.fields.into(),
            },
            signatures: row.signatures,
            saved_at: row.saved_at,
        })
    };
    rows.into_iter().map(fact).collect()
}

pub(super) struct LogRow {
    pub(super) seq: Seq,
    pub(super) kind: i32,
    pub(super) hash: Vec<u8>,
    /// Role and predecessor of each edge.
    pub(super) edges: Vec<(i32, Seq)>,
}

/// The log of at most `limit` rows after `after`; `settled` is the horizon that they were read at.
pub(super) fn read_log(
    rows: Vec<LogRow>,
    names: &NamesById,
    after: Seq,
    (settled, last): (Seq, Seq),
    limit: usize,
) -> Result<Log, Error> {
    let to = match rows.last() {
        Some(row) if rows.len() == limit => row.seq,
        _ => settled,
    };
    let entry = |row: LogRow| {
        let role = |(role, predecessor): (i32, Seq)| Ok((names.role(role)?, predecessor));
        let predecessors = row.edges.into_iter().map(role);
        Ok(LogEntry {
            seq: row.seq,
            predecessors: predecessors.collect::<Result<Vec<(Arc<str>, Seq)>, Error>>()?,
            reference: reference(names, row.kind, row.hash)?,
        })
    };
    Ok(Log {
        after,
        entries: rows.into_iter().map(entry).collect::<Result<_, Error>>()?,
        to,
        last,
    })
}

fn reference(names: &NamesById, kind: i32, hash: Vec<u8>) -> Result<Reference, Error> {
    let hash = hash.try_into().map(Hash);
    Ok(Reference {
        kind: names.kind(kind)?,
        hash: hash.map_err(|_| Error::Failed("a stored hash has not 64 bytes".into()))?,
    })
}

/// The texts of a definition's givens and of its owner, who is a list of one.
pub(super) fn definition_texts(definition: &Definition) -> (String, Option<String>) {
    let owner = definition.owner.as_ref().map(std::slice::from_ref);
    (
        write_reference_list(&definition.given),
        owner.map(write_reference_list),
    )
}

pub(super) fn read_definition(
    hash: String,
    text: String,
    given: &str,
    owner: Option<&str>,
) -> Result<Definition, Error> {
    let mut kinds = Kinds::default();
    let mut read = |text: &str| read_reference_list(text, &mut kinds).map_err(unreadable);
    Ok(Definition {
        hash: hash.into(),
        text: text.into(),
        given: read(given)?,
        owner: owner
            .map(&mut read)
            .transpose()?
            .and_then(|mut one| one.pop()),
    })
}

fn unreadable(error: InvalidFact) -> Error {
    Error::Failed(format!("a stored reference cannot be read: {error}"))
}
