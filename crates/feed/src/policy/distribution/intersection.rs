//! A specification narrowed to what a rule's users may see: the rule's user specification becomes
//! part of it, with the user as one more given.
//!
//! The feeds of the narrowed specification are those of a user who is not admitted yet. Their
//! hashes are upstream's, and so they are bound to the user. What such a feed delivers is decided
//! elsewhere: see [`super::Distribution::decide`].

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use crate::{
    login::USER,
    specification::{
        Condition, GivenLabel, Label, Match, Name, Path, Projection, SingleProjection,
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
    let mut used = specification.label_names();
    used.extend(users.label_names());
    used.insert(DISTRIBUTION_USER.into());
    let names = RefCell::new(NewNames::new(specification, users, used));
    let renamed = users.renamed(|name| names.borrow_mut().of(name));
    let mut names = names.into_inner();
    let mut lifted = renamed.matches;
    let user = names.of(&user);
    let pin = || identity(DISTRIBUTION_USER.into());
    match lifted.iter_mut().find(|one| one.unknown.name == user) {
        Some(found) => found.conditions.push(pin()),
        None => lifted.push(Match {
            unknown: Label {
                name: names.unused(&user),
                kind: USER.into(),
            },
            conditions: vec![identity(user), pin()],
        }),
    }
    let mut givens = specification.givens.clone();
    givens.push(GivenLabel {
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
    let Projection::Single(SingleProjection::Fact(label)) = &users.projection else {
        return None;
    };
    let givens = users.givens.iter().map(|given| &given.label);
    let mut labels = givens.chain(users.matches.iter().map(|one| &one.unknown));
    let found = labels.find(|known| known.name == *label)?;
    Some((label.clone(), found.kind.clone()))
}

fn are_alike(ours: &[GivenLabel], theirs: &[GivenLabel]) -> bool {
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

/// The names of the users' labels in the other specification: its givens are the
/// other's, one by one, and its unknowns get names that nothing else has.
struct NewNames {
    names: HashMap<Name, Name>,
    used: HashSet<Name>,
}

impl NewNames {
    fn new(specification: &Specification, users: &Specification, used: HashSet<Name>) -> Self {
        let givens = users.givens.iter().zip(&specification.givens);
        let name = |given: &GivenLabel| given.label.name.clone();
        Self {
            names: givens
                .map(|(theirs, ours)| (name(theirs), name(ours)))
                .collect(),
            used,
        }
    }

    fn of(&mut self, name: &Name) -> Name {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let new = self.unused(name);
        self.names.insert(name.clone(), new.clone());
        new
    }

    fn unused(&mut self, name: &Name) -> Name {
        let base = format!("dist_{name}");
        let numbered = (1_usize..).map(|number| Name::from(format!("{base}{number}")));
        let mut names = std::iter::once(Name::from(&*base)).chain(numbered);
        let new = names.find(|name| self.used.insert(name.clone()));
        new.unwrap_or_else(|| base.into())
    }
}
