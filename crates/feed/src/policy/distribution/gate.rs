//! Which facts can admit a user to a feed that is denied.

use std::sync::Arc;

use crate::{
    fact::Reference,
    feeds,
    policy::{InvalidRule, pattern::Pattern},
    query::Query,
    specification::{Condition, Label, Match, Path, Specification},
};

/// What a denied feed waits for: a new tuple of this may admit the user.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gate {
    pub query: Arc<Query>,
    /// In the order of its givens.
    pub given: Vec<Reference>,
}

/// A gate of a rule's feed, before it is known which facts the feed begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GateTemplate {
    query: Arc<Query>,
    /// Which of the feed's inputs its givens are.
    inputs: Vec<usize>,
}

impl GateTemplate {
    /// Every feed of the users is one: what must exist is in it beside what is found, and what
    /// takes a refusal back has a feed of its own. `places` says which of the users' givens each
    /// input of the feed is; a given that the feed lacks can be any.
    pub(super) fn all(users: &Specification, places: &[usize]) -> Result<Vec<Self>, InvalidRule> {
        let unfit = |error: &dyn std::fmt::Display| InvalidRule(error.to_string());
        let users = conditions_as_matches(users);
        let mut gates = Vec::new();
        for mut feed in feeds::build(&users).map_err(|error| unfit(&error))? {
            // A gate is only a hint: when a fact comes, the whole rule is checked.
            for one in &mut feed.matches {
                let is_path = |condition: &Condition| matches!(condition, Condition::Path(_));
                one.conditions.retain(is_path);
            }
            let pattern = Pattern::of(&feed).map_err(|error| unfit(&error))?;
            let (mut roots, mut inputs) = (Vec::new(), Vec::new());
            for (root, given) in feed.givens.iter().enumerate() {
                let mut givens = users.givens.iter();
                let place = givens.position(|one| one.label.name == given.label.name);
                if let Some(input) = places.iter().position(|one| Some(*one) == place) {
                    roots.push(root);
                    inputs.push(input);
                }
            }
            let gate = Self {
                query: pattern.from(&roots),
                inputs,
            };
            if !gates.contains(&gate) {
                gates.push(gate);
            }
        }
        Ok(gates)
    }

    /// `given` is in the order of the feed's inputs.
    pub(super) fn bound(&self, given: &[Reference]) -> Option<Gate> {
        let given = self.inputs.iter().map(|input| given.get(*input).cloned());
        Some(Gate {
            query: self.query.clone(),
            given: given.collect::<Option<_>>()?,
        })
    }
}

/// Feeds are built of matches alone: a condition on a given becomes one on a match that is the
/// given.
fn conditions_as_matches(users: &Specification) -> Specification {
    let mut users = users.clone();
    let mut matches = Vec::new();
    for given in &mut users.givens {
        let conditions = std::mem::take(&mut given.conditions);
        if conditions.is_empty() {
            continue;
        }
        let is_given = Path {
            left: Vec::new(),
            right_label: given.label.name.clone(),
            right: Vec::new(),
        };
        let conditions = conditions.into_iter().map(Condition::Existential);
        matches.push(Match {
            unknown: Label {
                // No text has such a name.
                name: format!("={}", given.label.name).into(),
                kind: given.label.kind.clone(),
            },
            conditions: [Condition::Path(is_given)]
                .into_iter()
                .chain(conditions)
                .collect(),
        });
    }
    matches.append(&mut users.matches);
    Specification { matches, ..users }
}
