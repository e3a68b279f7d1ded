//! A save made ready for a database: names are ids, predecessors are text.

use std::{collections::HashSet, sync::Arc};

use super::names::{NameSnapshot, RoleName};
use crate::fact::{Envelope, Fact, Hash, Kind};

#[derive(Clone, Debug)]
pub(super) struct PreparedSave {
    pub(super) envelopes: Arc<[Envelope]>,
    /// One for each envelope.
    pub(super) facts: Arc<[PreparedFact]>,
}

#[derive(Debug)]
pub(super) struct PreparedFact {
    pub(super) kind: i32,
    pub(super) predecessors: String,
    /// Each once.
    pub(super) edges: Vec<PreparedEdge>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PreparedEdge {
    pub(super) role: i32,
    /// `None` if there is no fact of such a type.
    pub(super) kind: Option<i32>,
    pub(super) hash: Hash,
    /// Which of the fact's references it is, over all roles.
    pub(super) index: usize,
}

/// Names whose ids are not in memory.
#[derive(Debug, Default)]
pub(super) struct MissingNames {
    /// Of the facts to be saved: they are made if need be.
    pub(super) kinds: HashSet<Kind>,
    pub(super) roles: HashSet<RoleName>,
    /// Of predecessors: they are there or not.
    pub(super) predecessors: HashSet<Kind>,
}

impl PreparedSave {
    /// `absent`: types of predecessors that are not stored.
    pub(super) fn new(
        envelopes: &Arc<[Envelope]>,
        known: &NameSnapshot,
        absent: &HashSet<Kind>,
    ) -> Result<Self, Box<MissingNames>> {
        let mut missing = MissingNames::default();
        let facts: Arc<[_]> = envelopes
            .iter()
            .map(|envelope| prepare(&envelope.fact, known, &mut missing))
            .collect();
        // The kinds and roles that are sent with the save are created by it.
        missing
            .predecessors
            .retain(|kind| !absent.contains(kind) && !missing.kinds.contains(kind));
        let MissingNames {
            kinds,
            roles,
            predecessors,
        } = &missing;
        if kinds.is_empty() && roles.is_empty() && predecessors.is_empty() {
            let envelopes = envelopes.clone();
            return Ok(Self { envelopes, facts });
        }
        Err(Box::new(missing))
    }
}

fn prepare(fact: &Fact, known: &NameSnapshot, missing: &mut MissingNames) -> PreparedFact {
    let of = &fact.reference.kind;
    let kind = known.kind_id(of).unwrap_or_else(|| {
        missing.kinds.insert(of.clone());
        0
    });
    let mut edges = Vec::new();
    for (name, predecessors) in &fact.predecessors {
        let role = known.role_id(of, name).unwrap_or_else(|| {
            missing.roles.insert((of.clone(), (&**name).into()));
            0
        });
        for reference in predecessors.references() {
            let kind = known.kind_id(&reference.kind);
            if kind.is_none() {
                missing.predecessors.insert(reference.kind.clone());
            }
            edges.push(PreparedEdge {
                role,
                kind,
                hash: reference.hash,
                index: edges.len(),
            });
        }
    }
    // A list may name a fact twice; an unknown type is refused before it counts.
    edges.sort_unstable();
    edges.dedup_by_key(|edge| (edge.role, edge.kind, edge.hash));
    PreparedFact {
        kind,
        predecessors: fact.predecessors_text(),
        edges,
    }
}

/// The reference that an edge was made of.
pub(super) fn edge_reference(fact: &Fact, edge: &PreparedEdge) -> crate::fact::Reference {
    let (_, reference) = fact
        .references()
        .nth(edge.index)
        .expect("an edge is of a reference");
    reference.clone()
}
