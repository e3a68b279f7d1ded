//! From a specification to its feeds.

use super::{
    MAX_FEEDS, MAX_PARTS, TooManyFeeds,
    context::{BuildContext, FollowingMatches},
};
use crate::specification::{
    Component, Condition, Existential, GivenLabel, Label, Match, Projection, Specification,
};

/// The feeds of a specification as upstream cuts it, most of which have some of its givens only.
/// A fact that follows from the givens alone is in no feed: a client has it with them.
pub fn build(specification: &Specification) -> Result<Vec<Specification>, TooManyFeeds> {
    let specification = specification.distinct();
    let mut builder = Builder {
        feeds: Vec::new(),
        parts: MAX_PARTS,
    };
    let mut tuple = Tuple::first(&specification);
    let projection = &specification.projection;
    builder.matches(
        &mut tuple,
        &specification.matches,
        BuildContext::first(projection),
    )?;
    builder.emit(&tuple)?;
    builder.collections(&tuple, projection)?;
    let mut feeds = builder.feeds;
    feeds.retain(Specification::seeks_successors);
    Ok(feeds)
}

/// A feed that grows match by match.
#[derive(Clone)]
pub(super) struct Tuple {
    pub(super) feed: Specification,
    /// The givens that it does not have yet.
    unused: Vec<Label>,
}

struct Builder {
    feeds: Vec<Specification>,
    /// How many more the feeds may have.
    parts: usize,
}

impl Builder {
    fn emit(&mut self, tuple: &Tuple) -> Result<(), TooManyFeeds> {
        if self.feeds.len() == MAX_FEEDS {
            return Err(TooManyFeeds);
        }
        let parts = parts(&tuple.feed.matches);
        self.parts = self.parts.checked_sub(parts).ok_or(TooManyFeeds)?;
        self.feeds.push(tuple.feed.clone());
        Ok(())
    }

    fn matches(
        &mut self,
        tuple: &mut Tuple,
        matches: &[Match],
        place: BuildContext<'_>,
    ) -> Result<(), TooManyFeeds> {
        for (index, found) in matches.iter().enumerate() {
            let at = tuple.feed.matches.len();
            tuple.feed.matches.push(paths_of(found));
            tuple.use_givens(found);
            let rest = FollowingMatches {
                matches: &matches[index + 1..],
                outer: place.rest,
            };
            let place = place.before(&rest);
            for condition in found.existentials() {
                if condition.exists {
                    self.matches(tuple, &condition.matches, place)?;
                } else {
                    self.negation(tuple, condition, place.negated())?;
                    let condition = tuple.negated(condition);
                    tuple.feed.matches[at]
                        .conditions
                        .push(Condition::Existential(condition));
                }
            }
        }
        Ok(())
    }

    /// The facts that prove that the condition does not hold. Where that is itself a negation of a
    /// negation, it brings a fact back, and what is collected from that fact with it.
    fn negation(
        &mut self,
        tuple: &Tuple,
        condition: &Existential,
        place: BuildContext<'_>,
    ) -> Result<(), TooManyFeeds> {
        let mut proof = tuple.clone();
        self.matches(&mut proof, &condition.matches, place)?;
        self.emit(&proof)?;
        if !place.negations.is_multiple_of(2) {
            return Ok(());
        }
        if place
            .rest
            .is_some_and(|rest| rest.is_mentioned(place.projection))
        {
            self.complete(&mut proof, place)?;
        }
        self.collections(&proof, place.projection)
    }

    /// Adds the matches after the fact that is brought back, since the collections need them.
    fn complete(&mut self, proof: &mut Tuple, place: BuildContext<'_>) -> Result<(), TooManyFeeds> {
        let mut next = place.rest;
        while let Some(rest) = next {
            let place = BuildContext {
                negations: 0,
                rest: rest.outer,
                ..place
            };
            self.matches(proof, rest.matches, place)?;
            next = rest.outer;
        }
        self.emit(proof)
    }

    fn collections(&mut self, tuple: &Tuple, projection: &Projection) -> Result<(), TooManyFeeds> {
        for (_, component) in projection.components() {
            if let Component::Collection {
                matches,
                projection,
            } = component
            {
                let mut child = tuple.clone();
                self.matches(&mut child, matches, BuildContext::first(projection))?;
                self.emit(&child)?;
                // A given that the collection uses comes again with what is collected within it:
                // upstream's hashes have it twice.
                child.unused.clone_from(&tuple.unused);
                self.collections(&child, projection)?;
            }
        }
        Ok(())
    }
}

pub(super) fn parts(matches: &[Match]) -> usize {
    let of = |found: &Match| {
        let steps = found
            .paths()
            .map(|path| path.left.len() + path.right.len() + 1);
        let inner = found
            .existentials()
            .map(|condition| parts(&condition.matches));
        1 + steps.sum::<usize>() + inner.sum::<usize>()
    };
    matches.iter().map(of).sum()
}

impl Tuple {
    /// Without any match.
    pub(super) fn first(of: &Specification) -> Self {
        let givens = of.givens.iter();
        Self {
            unused: givens.map(|given| given.label.clone()).collect(),
            feed: Specification {
                givens: Vec::new(),
                matches: Vec::new(),
                projection: Projection::empty(),
            },
        }
    }

    pub(super) fn use_givens(&mut self, found: &Match) {
        for path in found.paths() {
            let mut unused = self.unused.iter();
            if let Some(index) = unused.position(|label| label.name == path.right_label) {
                self.feed.givens.push(GivenLabel {
                    label: self.unused.remove(index),
                    conditions: Vec::new(),
                });
            }
        }
    }

    /// The condition as the feed has it: negations within it have feeds of their own, and what must
    /// exist besides belongs to what must not exist together.
    fn negated(&mut self, condition: &Existential) -> Existential {
        let mut matches = Vec::new();
        self.flatten(&condition.matches, &mut matches);
        Existential {
            exists: false,
            matches,
        }
    }

    fn flatten(&mut self, matches: &[Match], flat: &mut Vec<Match>) {
        for found in matches {
            flat.push(paths_of(found));
            self.use_givens(found);
            for condition in found.existentials().filter(|condition| condition.exists) {
                self.flatten(&condition.matches, flat);
            }
        }
    }
}

/// A path without roles is first: the skeleton says of the other paths where they lead, but of this
/// one only that it is where they start.
pub(super) fn paths_of(found: &Match) -> Match {
    let mut paths: Vec<_> = found.paths().cloned().collect();
    paths.sort_by_key(|path| !path.is_identity());
    Match {
        unknown: found.unknown.clone(),
        conditions: paths.into_iter().map(Condition::Path).collect(),
    }
}
