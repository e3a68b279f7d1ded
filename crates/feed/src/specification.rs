//! Specifications: which facts to find, from given facts on.

pub mod describe;
pub mod labels;
pub mod parser;
pub mod request;
pub mod scanner;
mod scope;
pub mod shape;
pub mod split;

use std::sync::Arc;

use crate::fact::Kind;

pub type Name = Arc<str>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    pub name: Name,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Specification {
    pub givens: Vec<GivenLabel>,
    pub matches: Vec<Match>,
    pub projection: Projection,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GivenLabel {
    pub label: Label,
    pub conditions: Vec<Existential>,
}

/// A fact to find, and its conditions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Match {
    pub unknown: Label,
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    Path(Path),
    Existential(Existential),
}

/// `unknown->left… = right->right…`: both lead to the same fact.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    pub left: Vec<Role>,
    pub right_label: Name,
    pub right: Vec<Role>,
}

/// A step to a predecessor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Role {
    pub name: Name,
    /// The predecessor's type.
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Existential {
    pub exists: bool,
    pub matches: Vec<Match>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Projection {
    Composite(Vec<(Name, Component)>),
    Single(SingleProjection),
}

impl Projection {
    #[must_use]
    pub fn empty() -> Self {
        Self::Composite(Vec::new())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Component {
    Collection {
        matches: Vec<Match>,
        projection: Projection,
    },
    Single(SingleProjection),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SingleProjection {
    /// `x.f`
    Field { label: Name, field: Name },
    /// `#x`
    Hash(Name),
    /// `@x`: when it was learned.
    Time(Name),
    /// `x`
    Fact(Name),
}

impl Match {
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.conditions
            .iter()
            .filter_map(|condition| match condition {
                Condition::Path(path) => Some(path),
                Condition::Existential(_) => None,
            })
    }

    pub fn existentials(&self) -> impl Iterator<Item = &Existential> {
        self.conditions
            .iter()
            .filter_map(|condition| match condition {
                Condition::Existential(existential) => Some(existential),
                Condition::Path(_) => None,
            })
    }
}

impl Path {
    /// `unknown = label`: it only says which fact it is.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.left.is_empty() && self.right.is_empty()
    }
}

impl Projection {
    /// The components of a composite one; else none.
    #[must_use]
    pub fn components(&self) -> &[(Name, Component)] {
        match self {
            Self::Composite(components) => components,
            Self::Single(_) => &[],
        }
    }
}

impl SingleProjection {
    #[must_use]
    pub fn label(&self) -> &Name {
        match self {
            Self::Field { label, .. }
            | Self::Hash(label)
            | Self::Time(label)
            | Self::Fact(label) => label,
        }
    }
}
