//! A feed without its names: two feeds with one skeleton are the same feed.

use std::{collections::HashMap, sync::Arc};

use serde::{Serialize, Serializer};

use crate::{
    fact::Kind,
    specification::{Condition, Label, Match, Name, Path, Specification},
};

/// All indexes of facts and edges count from 1, in the order of discovery. Fields are in the order
/// of canonical JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Skeleton {
    pub edges: Vec<Edge>,
    pub facts: Vec<Fact>,
    pub inputs: Vec<Input>,
    pub not_exists_conditions: Vec<NotExists>,
    pub outputs: Vec<Output>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    pub edge_index: usize,
    pub predecessor_fact_index: usize,
    #[serde(rename = "roleName", serialize_with = "text")]
    pub role: Name,
    pub successor_fact_index: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    pub fact_index: usize,
    #[serde(rename = "factType", serialize_with = "text")]
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    pub fact_index: usize,
    /// Of the specification's given, from 0.
    pub input_index: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotExists {
    pub edges: Vec<Edge>,
    pub not_exists_conditions: Vec<NotExists>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    pub fact_index: usize,
}

fn text<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

impl Skeleton {
    /// Of a specification whose labels are all known where they are used, as the parser's and the
    /// feed builder's are. Conditions of givens and projections are no part of it.
    #[must_use]
    pub fn of(specification: &Specification) -> Self {
        let givens = specification.givens.iter().enumerate();
        let mut walk = Walk {
            skeleton: Self::default(),
            givens: givens
                .map(|(index, given)| (&given.label.name, (index, &given.label.kind)))
                .collect(),
            edges: 0,
        };
        walk.matches(&specification.matches, &mut HashMap::new(), &mut Vec::new());
        walk.skeleton
    }

    /// The type of a fact.
    #[must_use]
    pub fn kind(&self, fact_index: usize) -> Option<&Kind> {
        let mut facts = self.facts.iter();
        let fact = facts.find(|fact| fact.fact_index == fact_index);
        fact.map(|fact| &fact.kind)
    }
}

/// The fact of a label.
type FactsByLabel<'a> = HashMap<&'a Name, usize>;

struct Walk<'a> {
    skeleton: Skeleton,
    givens: HashMap<&'a Name, (usize, &'a Kind)>,
    edges: usize,
}

impl<'a> Walk<'a> {
    /// `place` leads to the condition that we are in, by the index at each level.
    fn matches(
        &mut self,
        matches: &'a [Match],
        known: &mut FactsByLabel<'a>,
        place: &mut Vec<usize>,
    ) {
        for found in matches {
            for condition in &found.conditions {
                let condition = match condition {
                    Condition::Path(path) => {
                        self.path(&found.unknown, path, known, place);
                        continue;
                    }
                    Condition::Existential(condition) => condition,
                };
                let mut inner = known.clone();
                if condition.exists {
                    self.matches(&condition.matches, &mut inner, place);
                } else {
                    let siblings = conditions_at(&mut self.skeleton, place);
                    siblings.push(NotExists::default());
                    let index = siblings.len() - 1;
                    place.push(index);
                    self.matches(&condition.matches, &mut inner, place);
                    place.pop();
                }
            }
        }
    }

    fn path(
        &mut self,
        unknown: &'a Label,
        path: &'a Path,
        known: &mut FactsByLabel<'a>,
        place: &[usize],
    ) {
        let Some(mut fact) = self.start(&path.right_label, known) else {
            return;
        };
        let end = known.get(&unknown.name).copied();
        let mut steps = path.left.len() + path.right.len();
        // The last step leads to the unknown's fact, if a path before has already found it.
        let mut next = |walk: &mut Self, kind: &Kind| {
            steps -= 1;
            match end {
                Some(end) if steps == 0 => end,
                _ => walk.fact(kind),
            }
        };
        for role in &path.right {
            let predecessor = next(self, &role.kind);
            self.edge(predecessor, fact, &role.name, place);
            fact = predecessor;
        }
        for (index, role) in path.left.iter().enumerate().rev() {
            let kind = match index.checked_sub(1) {
                Some(before) => &path.left[before].kind,
                None => &unknown.kind,
            };
            let successor = next(self, kind);
            self.edge(fact, successor, &role.name, place);
            fact = successor;
        }
        if end.is_none() {
            known.insert(&unknown.name, fact);
            if place.is_empty() {
                self.skeleton.outputs.push(Output { fact_index: fact });
            }
        }
    }

    /// The fact of a label; a given becomes an input where it is first used.
    fn start(&mut self, label: &'a Name, known: &mut FactsByLabel<'a>) -> Option<usize> {
        if let Some(fact) = known.get(label) {
            return Some(*fact);
        }
        let (input_index, kind) = *self.givens.get(label)?;
        let fact_index = self.fact(kind);
        self.skeleton.inputs.push(Input {
            fact_index,
            input_index,
        });
        known.insert(label, fact_index);
        Some(fact_index)
    }

    fn fact(&mut self, kind: &Kind) -> usize {
        let fact_index = self.skeleton.facts.len() + 1;
        self.skeleton.facts.push(Fact {
            fact_index,
            kind: kind.clone(),
        });
        fact_index
    }

    fn edge(&mut self, predecessor: usize, successor: usize, role: &Name, place: &[usize]) {
        self.edges += 1;
        let edge = Edge {
            edge_index: self.edges,
            predecessor_fact_index: predecessor,
            role: role.clone(),
            successor_fact_index: successor,
        };
        match place.split_last() {
            None => self.skeleton.edges.push(edge),
            Some((index, above)) => conditions_at(&mut self.skeleton, above)[*index]
                .edges
                .push(edge),
        }
    }
}

fn conditions_at<'a>(skeleton: &'a mut Skeleton, place: &[usize]) -> &'a mut Vec<NotExists> {
    let mut conditions = &mut skeleton.not_exists_conditions;
    for index in place {
        conditions = &mut conditions[*index].not_exists_conditions;
    }
    conditions
}
