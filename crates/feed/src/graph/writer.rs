//! Writes graphs.

use std::{collections::HashMap, sync::Arc};

use thiserror::Error;

use crate::{
    fact::{Fact, Kind, Predecessors, Reference, Signature},
    json,
};

/// Writes one graph, fact by fact. It remembers what it wrote, for the indexes.
#[derive(Debug, Default)]
pub struct Writer {
    facts: HashMap<Reference, usize>,
    keys: HashMap<Arc<str>, usize>,
}

/// A fact was to be written before its predecessor.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a {successor} comes before its predecessor {predecessor}")]
pub struct MissingPredecessor {
    /// Its type.
    pub successor: Kind,
    pub predecessor: Reference,
}

impl Writer {
    /// Appends a fact, and the keys of its signatures if they are new. What was written already is
    /// left out.
    ///
    /// # Errors
    ///
    /// When a predecessor was not written before. Nothing is appended then.
    pub fn write(
        &mut self,
        out: &mut String,
        fact: &Fact,
        signatures: &[Signature],
    ) -> Result<(), MissingPredecessor> {
        if self.facts.contains_key(&fact.reference) {
            return Ok(());
        }
        for (_, predecessor) in fact.references() {
            if !self.facts.contains_key(predecessor) {
                return Err(MissingPredecessor {
                    successor: fact.reference.kind.clone(),
                    predecessor: predecessor.clone(),
                });
            }
        }
        for signature in signatures {
            self.declare(out, &signature.key);
        }
        json::write_string(out, &fact.reference.kind);
        out.push('\n');
        self.write_indexes(out, fact);
        out.push('\n');
        out.push_str(&fact.fields);
        for signature in signatures {
            out.push_str("\nPK");
            json::write_number(out, self.keys[&signature.key] as f64);
            out.push('\n');
            json::write_string(out, &signature.signature);
        }
        out.push_str("\n\n");
        self.facts.insert(fact.reference.clone(), self.facts.len());
        Ok(())
    }

    fn declare(&mut self, out: &mut String, key: &Arc<str>) {
        if self.keys.contains_key(key) {
            return;
        }
        let index = self.keys.len();
        self.keys.insert(key.clone(), index);
        out.push_str("PK");
        json::write_number(out, index as f64);
        out.push('\n');
        json::write_string(out, key);
        out.push_str("\n\n");
    }

    fn write_indexes(&self, out: &mut String, fact: &Fact) {
        let index = |out: &mut String, reference: &Reference| {
            json::write_number(out, self.facts[reference] as f64);
        };
        out.push('{');
        for (at, (role, predecessors)) in fact.predecessors.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            json::write_string(out, role);
            out.push(':');
            match predecessors {
                Predecessors::One(reference) => index(out, reference),
                Predecessors::Many(references) => {
                    out.push('[');
                    for (at, reference) in references.iter().enumerate() {
                        if at > 0 {
                            out.push(',');
                        }
                        index(out, reference);
                    }
                    out.push(']');
                }
            }
        }
        out.push('}');
    }
}
