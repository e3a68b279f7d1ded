//! A specification narrowed to what a rule's users may see: the rule's user specification becomes
//! part of it, with the user as one more given.
//!
//! The feeds of the narrowed specification name what a user waits for who is not admitted yet. Their
//! hashes are the same as upstream's, and so are bound to the user. What such a feed delivers is not
//! taken from here: see [`super::Distribution::decide`].

use std::collections::{HashMap, HashSet};

use crate::{
    login::USER,
    specification::{
        Component, Condition, Existential, Given, Label, Match, Name, Path, Projection, Single,
        Specification,
    },
};

/// The given that stands for the user.
pub const DISTRIBUTION_USER: &str = "distributionUser";

/// The narrowed specification. `None` where the rule's users are not found by this specification's
/// givens, or are no users.
#[must_use]
pub fn intersect(specification: &Specification, users: &Specification) -> Option<Specification> {
    let (user, projected_kind) = projected(users)?;
    if &*projected_kind != USER || !are_alike(&specification.givens, &users.givens) {
        return None;
    }
    let mut taken = Taken::of(specification, users);
    let names = taken.names_for(specification, users);
    let lifted = users.matches.iter().map(|one| renamed(one, &names));
    let mut lifted: Vec<Match> = lifted.collect();
    let user = names.get(&user).cloned().unwrap_or(user);
    let pin = || identity(DISTRIBUTION_USER.into());
    match lifted.iter_mut().find(|one| one.unknown.name == user) {
        Some(found) => found.conditions.push(pin()),
        None => lifted.push(Match {
            unknown: Label {
                name: taken.fresh(&format!("dist_{user}")),
                kind: USER.into(),
            },
            conditions: vec![identity(user), pin()],
        }),
    }
    let mut givens = specification.givens.clone();
    givens.push(Given {
        label: Label {
            name: DISTRIBUTION_USER.into(),
            kind: USER.into(),
        },
        conditions: Vec::new(),
    });
    lifted.extend(specification.matches.iter().cloned());
    Some(Specification {
        givens,
        matches: lifted,
        projection: specification.projection.clone(),
    })
}

/// The label that a rule's user specification is about, and its type.
pub(in crate::policy) fn projected(users: &Specification) -> Option<(Name, crate::fact::Kind)> {
    let Projection::Single(Single::Fact(label)) = &users.projection else {
        return None;
    };
    let givens = users.givens.iter().map(|given| &given.label);
    let mut labels = givens.chain(users.matches.iter().map(|one| &one.unknown));
    let found = labels.find(|known| known.name == *label)?;
    Some((label.clone(), found.kind.clone()))
}

fn are_alike(ours: &[Given], theirs: &[Given]) -> bool {
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(theirs)
            .all(|(one, other)| one.label.kind == other.label.kind)
}

fn identity(label: Name) -> Condition {
    Condition::Path(Path {
        left: Vec::new(),
        right_label: label,
        right: Vec::new(),
    })
}

/// Every name in use, so that a new one means nothing else.
struct Taken(HashSet<Name>);

impl Taken {
    fn of(specification: &Specification, users: &Specification) -> Self {
        let mut taken = Self(HashSet::from([DISTRIBUTION_USER.into()]));
        for one in [specification, users] {
            let givens = one.givens.iter().map(|given| given.label.name.clone());
            taken.0.extend(givens);
            taken.add(&one.matches);
            taken.add_projection(&one.projection);
        }
        taken
    }

    fn add(&mut self, matches: &[Match]) {
        for one in matches {
            self.0.insert(one.unknown.name.clone());
            for condition in &one.conditions {
                if let Condition::Existential(inner) = condition {
                    self.add(&inner.matches);
                }
            }
        }
    }

    fn add_projection(&mut self, projection: &Projection) {
        if let Projection::Composite(components) = projection {
            for (_, component) in components {
                if let Component::Collection {
                    matches,
                    projection,
                } = component
                {
                    self.add(matches);
                    self.add_projection(projection);
                }
            }
        }
    }

    fn fresh(&mut self, wanted: &str) -> Name {
        let numbered = (1..).map(|number| Name::from(format!("{wanted}{number}")));
        let mut names = std::iter::once(Name::from(wanted)).chain(numbered);
        let name = names.find(|name| !self.0.contains(name));
        let name = name.unwrap_or_else(|| wanted.into());
        self.0.insert(name.clone());
        name
    }

    /// What the user specification's labels are called in the other one: its givens are the other's,
    /// place by place, and its unknowns get names that nobody has.
    fn names_for(
        &mut self,
        specification: &Specification,
        users: &Specification,
    ) -> HashMap<Name, Name> {
        let mut names = HashMap::new();
        for (theirs, ours) in users.givens.iter().zip(&specification.givens) {
            names.insert(theirs.label.name.clone(), ours.label.name.clone());
        }
        let mut unknowns = Vec::new();
        collect(&users.matches, &mut unknowns);
        for unknown in unknowns {
            let wanted = format!("dist_{unknown}");
            names.entry(unknown).or_insert_with(|| self.fresh(&wanted));
        }
        names
    }
}

fn collect(matches: &[Match], into: &mut Vec<Name>) {
    for one in matches {
        into.push(one.unknown.name.clone());
        for condition in &one.conditions {
            if let Condition::Existential(inner) = condition {
                collect(&inner.matches, into);
            }
        }
    }
}

fn renamed(one: &Match, names: &HashMap<Name, Name>) -> Match {
    let name = |name: &Name| names.get(name).unwrap_or(name).clone();
    Match {
        unknown: Label {
            name: name(&one.unknown.name),
            kind: one.unknown.kind.clone(),
        },
        conditions: one
            .conditions
            .iter()
            .map(|condition| match condition {
                Condition::Path(path) => Condition::Path(Path {
                    right_label: name(&path.right_label),
                    ..path.clone()
                }),
                Condition::Existential(inner) => Condition::Existential(Existential {
                    exists: inner.exists,
                    matches: inner
                        .matches
                        .iter()
                        .map(|one| renamed(one, names))
                        .collect(),
                }),
            })
            .collect(),
    }
}
