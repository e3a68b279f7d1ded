//! Facts and references in JSON: what `/save` and `/load` take and give.

use thiserror::Error;

use super::{Fact, Hash, InvalidFact, Kinds, Reference, predecessors};
use crate::json::{self, Limits, Parser, Value};

/// Why a body is refused. Nothing of it was saved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    #[error(transparent)]
    Json(#[from] json::Error),
    #[error("Expected an array '{0}' property.")]
    NoList(&'static str),
    #[error("{list}[{index}]: {unfit}")]
    InvalidFact {
        list: &'static str,
        index: usize,
        unfit: InvalidFact,
    },
    /// The sender computes hashes in another way, or the fact was changed.
    #[error("facts[{index}]: the hash of this {kind} is {computed}, not {sent}")]
    WrongHash {
        index: usize,
        kind: super::Kind,
        sent: Box<str>,
        computed: Hash,
    },
    #[error("more than {limit} {list}")]
    Many { list: &'static str, limit: usize },
}

/// The facts of `{"facts":[{type, hash, predecessors, fields}]}`, at most so many.
///
/// # Errors
///
/// When one of them is no fact, or its hash is not what its content gives.
pub fn read_facts(body: &[u8], limit: usize) -> Result<Vec<Fact>, BodyError> {
    let mut kinds = Kinds::default();
    read_list(body, "facts", limit, |index, value| {
        read_fact(index, value, &mut kinds)
    })
}

/// The references of `{"references":[{type, hash}]}`, at most so many. One with a hash that cannot
/// be one is left out, as unknown facts are.
///
/// # Errors
///
/// When one of them is no reference.
pub fn read_references(body: &[u8], limit: usize) -> Result<Vec<Reference>, BodyError> {
    const LIST: &str = "references";
    let mut kinds = Kinds::default();
    let references = read_list(body, LIST, limit, |index, value| {
        match Reference::read(value, &"the reference", &mut kinds) {
            Ok(reference) => Ok(Some(reference)),
            Err(wrong @ (InvalidFact::Missing { .. } | InvalidFact::Shape { .. })) => {
                Err(unfit(LIST, index)(wrong))
            }
            Err(_) => Ok(None),
        }
    })?;
    Ok(references.into_iter().flatten().collect())
}

/// Appends a fact as `/load` answers it. The timestamp is ISO 8601.
pub fn write_loaded(out: &mut String, fact: &Fact, timestamp: &str) {
    write_reference(out, fact);
    out.push_str(",\"fields\":");
    out.push_str(&fact.fields);
    out.push_str(",\"predecessors\":");
    super::write_predecessors(out, &fact.predecessors);
    out.push_str(",\"timestamp\":");
    json::write_string(out, timestamp);
    out.push('}');
}

/// Appends a fact as clients send it, and `/login` answers the user's.
pub fn write_sent(out: &mut String, fact: &Fact) {
    write_reference(out, fact);
    out.push_str(",\"predecessors\":");
    super::write_predecessors(out, &fact.predecessors);
    out.push_str(",\"fields\":");
    out.push_str(&fact.fields);
    out.push('}');
}

fn write_reference(out: &mut String, fact: &Fact) {
    fact.reference.write(out);
    // More members follow.
    out.pop();
}

fn read_fact(index: usize, value: &Value<'_>, kinds: &mut Kinds) -> Result<Fact, BodyError> {
    let unfit = unfit("facts", index);
    let Some(object) = value.as_object() else {
        return Err(unfit(predecessors::shape(&"it", "an object", value)));
    };
    let part = |what| object.get(what).ok_or(InvalidFact::Missing { what });
    let built = (|| {
        let kind = predecessors::string(object, "type")?;
        let kind = kind
            .as_str()
            .ok_or(InvalidFact::Surrogate { what: "type name" })?;
        let sent = predecessors::string(object, "hash")?;
        let roles = predecessors::read_roles(part("predecessors")?, kinds)?;
        let fact = Fact::new(kinds.get(kind)?, roles, part("fields")?)?;
        Ok((fact, sent))
    })();
    let (fact, sent) = built.map_err(unfit)?;
    if sent.as_str().and_then(Hash::read) != Some(fact.reference.hash) {
        return Err(BodyError::WrongHash {
            index,
            kind: fact.reference.kind.clone(),
            sent: sent.to_lossy().chars().take(100).collect(),
            computed: fact.reference.hash,
        });
    }
    Ok(fact)
}

/// Reads the one list that matters of an object. Of two the last counts, as in JavaScript.
fn read_list<T>(
    body: &[u8],
    list: &'static str,
    limit: usize,
    mut element: impl FnMut(usize, &Value<'_>) -> Result<T, BodyError>,
) -> Result<Vec<T>, BodyError> {
    let text = json::utf8(body)?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut read = None;
    let limits = Limits {
        bytes: usize::MAX,
        ..Limits::DEFAULT
    };
    let mut parser = Parser::new(text, limits)?;
    parser.members(|parser, key| {
        if key.as_str() != Some(list) {
            parser.value()?;
            return Ok(());
        }
        let mut elements = Vec::new();
        parser.elements(|parser| {
            if elements.len() == limit {
                return Err(BodyError::Many { list, limit });
            }
            elements.push(element(elements.len(), &parser.value()?)?);
            Ok(())
        })?;
        read = Some(elements);
        Ok::<_, BodyError>(())
    })?;
    parser.end()?;
    read.ok_or(BodyError::NoList(list))
}

fn unfit(list: &'static str, index: usize) -> impl FnOnce(InvalidFact) -> BodyError + Copy {
    move |unfit| BodyError::InvalidFact { list, index, unfit }
}
