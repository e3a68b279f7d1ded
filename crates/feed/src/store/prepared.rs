//! A save made ready for a database: names are ids, predecessors are text.

use std::{collections::HashSet, sync::Arc};

use super::{
    names::{Known, RoleName},
    text,
};
use crate::fact::{Envelope, Fact, Hash, Kind};

#[derive(Clone, Debug)]
pub(super) struct Prepared {
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
    pub(super) place: usize,
}

/// How often ids are asked for: they may be forgotten between two questions (see [`Names`]), but not
/// time and again.
///
/// [`Names`]: super::names::Names
pub(super) const MAX_LOOKS: usize = 5;

/// Names whose ids are not in memory.
#[derive(Debug, Default)]
pub(super) struct Lacking {
    /// Of the facts to be saved: they are made if need be.
    pub(super) kinds: HashSet<Kind>,
    pub(super) roles: HashSet<RoleName>,
    /// Of predecessors: they are there or not.
    pub(super) predecessors: HashSet<Kind>,
}

impl Prepared {
    /// `absent`: types of predecessors that have been looked for in vain.
    pub(super) fn new(
        envelopes: &Arc<[Envelope]>,
        known: &Known,
        absent: &HashSet<Kind>,
    ) -> Result<Self, Box<Lacking>> {
        let mut lacking = Lacking::default();
        let facts: Arc<[_]> = envelopes
            .iter()
            .map(|envelope| prepare(&envelope.fact, known, &mut lacking))
            .collect();
        // What is sent along will be made.
        lacking
            .predecessors
            .retain(|kind| !absent.contains(kind) && !lacking.kinds.contains(kind));
        let Lacking {
            kinds,
            roles,
            predecessors,
        } = &lacking;
        if kinds.is_empty() && roles.is_empty() && predecessors.is_empty() {
            let envelopes = envelopes.clone();
            return Ok(Self { envelopes, facts });
        }
        Err(Box::new(lacking))
    }
}

fn prepare(fact: &Fact, known: &Known, lacking: &mut Lacking) -> PreparedFact {
    let of = &fact.reference.kind;
    let kind = known.kind_id(of).unwrap_or_else(|| {
        lacking.kinds.insert(of.clone());
        0
    });
    let mut edges = Vec::new();
    for (name, predecessors) in &fact.predecessors {
        let role = known.role_id(of, name).unwrap_or_else(|| {
            lacking.roles.insert((of.clone(), (&**name).into()));
            0
        });
        for reference in predecessors.references() {
            let kind = known.kind_id(&reference.kind);
            if kind.is_none() {
                lacking.predecessors.insert(reference.kind.clone());
            }
            edges.push(PreparedEdge {
                role,
                kind,
                hash: reference.hash,
                place: edges.len(),
            });
        }
    }
    // A list may name a fact twice; an unknown type is refused before it counts.
    edges.sort_unstable();
    edges.dedup_by_key(|edge| (edge.role, edge.kind, edge.hash));
    PreparedFact {
        kind,
        predecessors: text::write_predecessors(&fact.predecessors),
        edges,
    }
}

/// The reference that an edge was made of.
pub(super) fn referred(fact: &Fact, edge: &PreparedEdge) -> crate::fact::Reference {
    let references = fact
        .predecessors
        .iter()
        .flat_map(|(_, predecessors)| predecessors.references());
    let mut references = references.skip(edge.place);
    references
        .next()
        .expect("an edge is of a reference")
        .clone()
}
