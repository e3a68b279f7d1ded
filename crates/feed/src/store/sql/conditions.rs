//! What must exist or must not.

use super::{Loop, Nothing, Text, all, found};
use crate::query::{Edge, Exists, Query, Walk};

/// A condition as far as it can be told without asking.
pub(super) enum Told {
    Always,
    Never,
    Asked(String),
}

impl Text<'_> {
    pub(super) fn exists(&mut self, condition: &Exists, base: usize) -> Told {
        let numbers = self.numbers.len();
        self.kinds.extend(condition.variables.iter().cloned());
        let inside = self.inside(condition, base);
        self.kinds.truncate(base);
        for variable in base..base + condition.variables.len() {
            self.terms.remove(&variable);
        }
        match inside {
            Ok(text) if text.is_empty() && condition.exists => Told::Always,
            Ok(text) if text.is_empty() => Told::Never,
            Ok(text) => Told::Asked(text),
            Err(Nothing) => {
                self.numbers.truncate(numbers);
                if condition.exists {
                    Told::Never
                } else {
                    Told::Always
                }
            }
        }
    }

    /// Empty if there is nothing to ask for.
    fn inside(&mut self, condition: &Exists, base: usize) -> Result<String, Nothing> {
        let walk = condition.walk(base);
        let (mut loops, mut conditions) = self.loops(&walk, &condition.edges)?;
        for (one, other) in &condition.equals {
            conditions.push(format!("{} = {}", self.term(*one), self.term(*other)));
        }
        let inner = base + condition.variables.len();
        for condition in &condition.conditions {
            match self.exists(condition, inner) {
                Told::Always => {}
                Told::Never => return Err(Nothing),
                Told::Asked(text) => conditions.push(text),
            }
        }
        for each in &mut loops {
            conditions.append(&mut each.conditions);
        }
        if loops.is_empty() && conditions.is_empty() {
            return Ok(String::new());
        }
        let from = if loops.is_empty() {
            "(SELECT 1) one".into()
        } else {
            self.nested(&loops)
        };
        Ok(found(&from, &all(&conditions), condition.exists))
    }

    /// The loops of a walk, and what is asked before them.
    pub(super) fn loops(
        &mut self,
        walk: &Walk,
        edges: &[Edge],
    ) -> Result<(Vec<Loop>, Vec<String>), Nothing> {
        let mut first = Vec::new();
        for edge in &walk.first {
            first.push(self.edge(&edges[*edge])?);
        }
        let mut loops = Vec::with_capacity(walk.steps.len());
        for step in &walk.steps {
            loops.push(self.step(step, edges)?);
        }
        Ok((loops, first))
    }

    /// That no way to the same tuple through these hidden variables comes before the one found: a
    /// tuple counts once.
    pub(super) fn is_first_way(
        &mut self,
        query: &Query,
        group: &[usize],
    ) -> Result<String, Nothing> {
        let base = query.variables.len();
        let twin = |variable: usize| match group.iter().position(|hidden| *hidden == variable) {
            Some(place) => base + place,
            None => variable,
        };
        let edges: Vec<Edge> = query
            .edges
            .iter()
            .filter(|edge| group.contains(&edge.successor) || group.contains(&edge.predecessor))
            .map(|edge| Edge {
                successor: twin(edge.successor),
                role: edge.role.clone(),
                predecessor: twin(edge.predecessor),
            })
            .collect();
        let twins = Exists {
            exists: false,
            variables: group
                .iter()
                .map(|hidden| query.variables[*hidden].clone())
                .collect(),
            edges,
            equals: Vec::new(),
            conditions: Vec::new(),
        };
        self.kinds.extend(twins.variables.iter().cloned());
        let (loops, mut conditions) = self.loops(&twins.walk(base), &twins.edges)?;
        conditions.extend(loops.iter().flat_map(|each| each.conditions.clone()));
        let own: Vec<String> = group.iter().map(|hidden| self.term(*hidden)).collect();
        let other: Vec<String> = (base..base + group.len())
            .map(|twin| self.term(twin))
            .collect();
        conditions.push(format!("({}) < ({})", other.join(", "), own.join(", ")));
        self.kinds.truncate(base);
        for twin in base..base + group.len() {
            self.terms.remove(&twin);
        }
        Ok(found(&self.nested(&loops), &all(&conditions), false))
    }
}
