//! From the matches of a specification to a query.

use std::collections::HashMap;

use super::{Edge, Error, Exists, MAX_DEPTH, MAX_TOGETHER, MAX_VARIABLES, Query};
use crate::{
    fact::Kind,
    specification::{Condition, Existential, Label, Match, Path},
};

pub(super) fn query(
    givens: &[Label],
    conditions: &[&Existential],
    matches: &[Match],
) -> Result<Query, Error> {
    let mut left = MAX_VARIABLES;
    let mut part = Part::default();
    for (number, given) in givens.iter().enumerate() {
        part.kinds.push(given.kind.clone());
        part.labels.insert(&given.name, number);
        left = left.checked_sub(1).ok_or(Error::TooLarge)?;
    }
    for condition in conditions {
        part.waiting.push((condition, part.labels.clone()));
    }
    for wanted in matches {
        let output = part.add(wanted, &mut left)?;
        part.outputs.push(output);
    }
    check_together(part.kinds.len() - givens.len())?;
    let conditions = part.conditions(0, &mut left)?;
    Ok(Query {
        givens: givens.len(),
        variables: part.kinds,
        edges: part.edges,
        equals: part.equals,
        conditions,
        outputs: part.outputs,
    })
}

fn check_together(variables: usize) -> Result<(), Error> {
    if variables > MAX_TOGETHER {
        return Err(Error::TooMuchTogether);
    }
    Ok(())
}

/// A query, or the inside of a condition, as far as it is built.
#[derive(Default)]
struct Part<'a> {
    /// Of all variables, those outside too.
    kinds: Vec<Kind>,
    labels: HashMap<&'a str, usize>,
    edges: Vec<Edge>,
    equals: Vec<(usize, usize)>,
    outputs: Vec<usize>,
    /// With the labels that are known where the condition stands. Their variables are numbered
    /// after all of this part, so they come when it is complete.
    waiting: Vec<(&'a Existential, HashMap<&'a str, usize>)>,
}

impl<'a> Part<'a> {
    fn variable(&mut self, kind: &Kind, left: &mut usize) -> Result<usize, Error> {
        *left = left.checked_sub(1).ok_or(Error::TooLarge)?;
        self.kinds.push(kind.clone());
        Ok(self.kinds.len() - 1)
    }

    fn add(&mut self, wanted: &'a Match, left: &mut usize) -> Result<usize, Error> {
        let mut found = None;
        for condition in &wanted.conditions {
            match condition {
                Condition::Path(path) => {
                    let at = self.path(&wanted.unknown, path, found, left)?;
                    self.labels.insert(&wanted.unknown.name, at);
                    found = Some(at);
                }
                Condition::Existential(_) => {}
            }
        }
        let found = found.ok_or_else(|| Error::Unconnected(wanted.unknown.name.clone()))?;
        for condition in &wanted.conditions {
            if let Condition::Existential(existential) = condition {
                self.waiting.push((existential, self.labels.clone()));
            }
        }
        Ok(found)
    }

    /// Goes up from the right side and down to the unknown, which may be known from a path before.
    fn path(
        &mut self,
        unknown: &Label,
        path: &Path,
        known: Option<usize>,
        left: &mut usize,
    ) -> Result<usize, Error> {
        let right = self.labels.get(&*path.right_label).copied();
        let mut at = right.ok_or_else(|| Error::UnknownLabel(path.right_label.clone()))?;
        let (last, way) = match path.right.split_last() {
            Some((last, way)) if path.left.is_empty() => (Some(last), way),
            _ => (None, &*path.right),
        };
        for role in way {
            let predecessor = self.variable(&role.kind, left)?;
            self.connect(at, &role.name, predecessor);
            at = predecessor;
        }
        let met = last.map_or(&self.kinds[at], |role| &role.kind);
        let wanted = path.left.last().map_or(&unknown.kind, |role| &role.kind);
        if met != wanted {
            return Err(Error::Mismatch {
                label: unknown.name.clone(),
                left: wanted.clone(),
                right: met.clone(),
            });
        }
        if let Some(role) = last {
            let predecessor = self.known_or_new(known, &unknown.kind, left)?;
            self.connect(at, &role.name, predecessor);
            return Ok(predecessor);
        }
        for number in (0..path.left.len()).rev() {
            let successor = match number.checked_sub(1) {
                Some(before) => self.variable(&path.left[before].kind, left)?,
                None => self.known_or_new(known, &unknown.kind, left)?,
            };
            self.connect(successor, &path.left[number].name, at);
            at = successor;
        }
        if let Some(known) = known.filter(|known| *known != at) {
            self.equals.push((known, at));
            return Ok(known);
        }
        Ok(at)
    }

    fn known_or_new(
        &mut self,
        known: Option<usize>,
        kind: &Kind,
        left: &mut usize,
    ) -> Result<usize, Error> {
        match known {
            Some(known) => Ok(known),
            None => self.variable(kind, left),
        }
    }

    fn connect(&mut self, successor: usize, role: &std::sync::Arc<str>, predecessor: usize) {
        let edge = Edge {
            successor,
            role: role.clone(),
            predecessor,
        };
        if !self.edges.contains(&edge) {
            self.edges.push(edge);
        }
    }

    fn conditions(&mut self, depth: usize, left: &mut usize) -> Result<Vec<Exists>, Error> {
        if depth >= MAX_DEPTH && !self.waiting.is_empty() {
            return Err(Error::TooDeep);
        }
        let mut conditions = Vec::with_capacity(self.waiting.len());
        for (existential, labels) in std::mem::take(&mut self.waiting) {
            let mut inner = Part {
                kinds: self.kinds.clone(),
                labels,
                ..Part::default()
            };
            for wanted in &existential.matches {
                inner.add(wanted, left)?;
            }
            check_together(inner.kinds.len() - self.kinds.len())?;
            let own = inner.conditions(depth + 1, left)?;
            conditions.push(Exists {
                exists: existential.exists,
                variables: inner.kinds.split_off(self.kinds.len()),
                edges: inner.edges,
                equals: inner.equals,
                conditions: own,
            });
        }
        Ok(conditions)
    }
}
