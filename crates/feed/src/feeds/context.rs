//! Where in a specification the builder of feeds is.

use std::collections::HashSet;

use crate::specification::{Component, Match, Name, Projection};

/// Where in a specification matches are.
#[derive(Clone, Copy)]
pub(super) struct BuildContext<'a> {
    /// Of the specification or collection that they are in.
    pub(super) projection: &'a Projection,
    /// Around them.
    pub(super) negations: usize,
    /// The matches after the match that they are in, outside of negations.
    pub(super) rest: Option<&'a FollowingMatches<'a>>,
}

impl<'a> BuildContext<'a> {
    pub(super) fn first(projection: &'a Projection) -> Self {
        Self {
            projection,
            negations: 0,
            rest: None,
        }
    }

    pub(super) fn before<'b>(self, rest: &'b FollowingMatches<'b>) -> BuildContext<'b>
    where
        'a: 'b,
    {
        match self.negations {
            0 => BuildContext {
                rest: Some(rest),
                ..self
            },
            _ => self,
        }
    }

    pub(super) fn negated(self) -> Self {
        Self {
            negations: self.negations + 1,
            ..self
        }
    }
}

pub(super) struct FollowingMatches<'a> {
    pub(super) matches: &'a [Match],
    pub(super) outer: Option<&'a FollowingMatches<'a>>,
}

impl FollowingMatches<'_> {
    /// Whether a collection starts from one of these matches.
    pub(super) fn is_mentioned(&self, projection: &Projection) -> bool {
        let mut names = HashSet::new();
        collected_from(projection, &mut names);
        let mut next = Some(self);
        while let Some(rest) = next {
            if rest
                .matches
                .iter()
                .any(|found| names.contains(&found.unknown.name))
            {
                return true;
            }
            next = rest.outer;
        }
        false
    }
}

fn collected_from<'a>(projection: &'a Projection, names: &mut HashSet<&'a Name>) {
    for (_, component) in projection.components() {
        if let Component::Collection {
            matches,
            projection,
        } = component
        {
            mentioned(matches, names);
            collected_from(projection, names);
        }
    }
}

fn mentioned<'a>(matches: &'a [Match], names: &mut HashSet<&'a Name>) {
    for found in matches {
        names.extend(found.paths().map(|path| &path.right_label));
        for condition in found.existentials() {
            mentioned(&condition.matches, names);
        }
    }
}
