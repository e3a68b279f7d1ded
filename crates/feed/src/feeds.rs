//! What a specification is cut into: each feed is a row of facts that a client needs all of.

use std::collections::HashSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;
use sha2::{Digest as _, Sha512};

use crate::{
    fact::Reference,
    skeleton::Skeleton,
    specification::{
        Component, Condition, Existential, Given, Label, Match, Name, Projection, Specification,
    },
};

/// Conditions within conditions multiply with collections: a short text could ask for millions.
pub const MAX_FEEDS: usize = 500;
/// Matches and steps of all feeds of a specification: each feed has again what others have.
pub const MAX_PARTS: usize = 20_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The specification makes more than {MAX_FEEDS} feeds, or feeds of more than {MAX_PARTS} parts"
)]
pub struct TooMany;

/// A feed of given facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    pub hash: String,
    pub specification: Specification,
    /// In the order of the feed's givens, which is not that of what it was built from.
    pub given: Vec<Reference>,
}

/// The feeds of a specification from these facts on, one for each of its givens; each feed once.
pub fn of(specification: &Specification, given: &[Reference]) -> Result<Vec<Feed>, TooMany> {
    let mut feeds = Vec::new();
    let mut seen = HashSet::new();
    for feed in build(specification)? {
        let given = bind(&feed, specification, given);
        let hash = hash(&feed, &given);
        if seen.insert(hash.clone()) {
            feeds.push(Feed {
                hash,
                specification: feed,
                given,
            });
        }
    }
    Ok(feeds)
}

/// The references of the feed's givens, which are some of the specification's.
fn bind(feed: &Specification, of: &Specification, given: &[Reference]) -> Vec<Reference> {
    let reference = |name: &Name| {
        let index = of
            .givens
            .iter()
            .position(|given| given.label.name == *name)?;
        given.get(index).cloned()
    };
    feed.givens
        .iter()
        .filter_map(|given| reference(&given.label.name))
        .collect()
}

/// Names the feed to clients. `given` is in the order of the feed's givens.
#[must_use]
pub fn hash(feed: &Specification, given: &[Reference]) -> String {
    let skeleton = Skeleton::of(feed);
    let inputs = skeleton.inputs.iter();
    let start = inputs.filter_map(|input| {
        let reference = given.get(input.input_index)?;
        Some(Start {
            fact_reference: StartReference {
                hash: reference.hash.to_string(),
                kind: &reference.kind,
            },
            index: input.input_index,
        })
    });
    let identifier = Identifier {
        start: start.collect(),
        skeleton,
    };
    // Nothing of it can fail to be JSON.
    let canonical = serde_json::to_vec(&identifier).unwrap_or_default();
    URL_SAFE_NO_PAD.encode(Sha512::digest(canonical))
}

/// What is hashed; all fields in the order of canonical JSON.
#[derive(Serialize)]
struct Identifier<'a> {
    skeleton: Skeleton,
    start: Vec<Start<'a>>,
}

#[derive(Serialize)]
struct Start<'a> {
    #[serde(rename = "factReference")]
    fact_reference: StartReference<'a>,
    index: usize,
}

#[derive(Serialize)]
struct StartReference<'a> {
    hash: String,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// The feeds of a specification, most of which have some of its givens only. What follows from the
/// givens alone is in no feed: a client has it with them.
pub fn build(specification: &Specification) -> Result<Vec<Specification>, TooMany> {
    let specification = specification.distinct();
    let mut builder = Builder {
        feeds: Vec::new(),
        parts: MAX_PARTS,
    };
    let mut tuple = Tuple {
        unused: specification
            .givens
            .iter()
            .map(|given| given.label.clone())
            .collect(),
        feed: Specification {
            givens: Vec::new(),
            matches: Vec::new(),
            projection: Projection::empty(),
        },
    };
    let projection = &specification.projection;
    builder.matches(&mut tuple, &specification.matches, Place::first(projection))?;
    builder.emit(&tuple)?;
    builder.collections(&tuple, projection)?;
    let mut feeds = builder.feeds;
    feeds.retain(Specification::seeks_successors);
    Ok(feeds)
}

/// A feed that grows match by match.
#[derive(Clone)]
struct Tuple {
    feed: Specification,
    /// The givens that it does not have yet.
    unused: Vec<Label>,
}

/// Where in a specification matches are.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// Of the specification or collection that they are in.
    projection: &'a Projection,
    /// Around them.
    negations: usize,
    /// What comes after the match, outside of negations, that they are in.
    rest: Option<&'a Rest<'a>>,
}

impl<'a> Place<'a> {
    fn first(projection: &'a Projection) -> Self {
        Self {
            projection,
            negations: 0,
            rest: None,
        }
    }

    fn before<'b>(self, rest: &'b Rest<'b>) -> Place<'b>
    where
        'a: 'b,
    {
        match self.negations {
            0 => Place {
                rest: Some(rest),
                ..self
            },
            _ => self,
        }
    }

    fn negated(self) -> Self {
        Self {
            negations: self.negations + 1,
            ..self
        }
    }
}

struct Rest<'a> {
    matches: &'a [Match],
    outer: Option<&'a Rest<'a>>,
}

impl Rest<'_> {
    /// Whether a collection starts from one of these matches.
    fn is_mentioned(&self, projection: &Projection) -> bool {
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

struct Builder {
    feeds: Vec<Specification>,
    /// How many more the feeds may have.
    parts: usize,
}

impl Builder {
    fn emit(&mut self, tuple: &Tuple) -> Result<(), TooMany> {
        if self.feeds.len() == MAX_FEEDS {
            return Err(TooMany);
        }
        let parts = parts(&tuple.feed.matches);
        self.parts = self.parts.checked_sub(parts).ok_or(TooMany)?;
        self.feeds.push(tuple.feed.clone());
        Ok(())
    }

    fn matches(
        &mut self,
        tuple: &mut Tuple,
        matches: &[Match],
        place: Place<'_>,
    ) -> Result<(), TooMany> {
        for (index, found) in matches.iter().enumerate() {
            let at = tuple.feed.matches.len();
            tuple.feed.matches.push(paths_of(found));
            tuple.use_givens(found);
            let rest = Rest {
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

    /// What proves that the condition does not hold. Where that is itself a negation of a negation,
    /// it brings a fact back, and what is collected from that fact with it.
    fn negation(
        &mut self,
        tuple: &Tuple,
        condition: &Existential,
        place: Place<'_>,
    ) -> Result<(), TooMany> {
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
    fn complete(&mut self, proof: &mut Tuple, place: Place<'_>) -> Result<(), TooMany> {
        let mut next = place.rest;
        while let Some(rest) = next {
            let place = Place {
                negations: 0,
                rest: rest.outer,
                ..place
            };
            self.matches(proof, rest.matches, place)?;
            next = rest.outer;
        }
        self.emit(proof)
    }

    fn collections(&mut self, tuple: &Tuple, projection: &Projection) -> Result<(), TooMany> {
        for (_, component) in projection.components() {
            if let Component::Collection {
                matches,
                projection,
            } = component
            {
                let mut child = tuple.clone();
                self.matches(&mut child, matches, Place::first(projection))?;
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

fn parts(matches: &[Match]) -> usize {
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
    fn use_givens(&mut self, found: &Match) {
        for path in found.paths() {
            let mut unused = self.unused.iter();
            if let Some(index) = unused.position(|label| label.name == path.right_label) {
                self.feed.givens.push(Given {
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
fn paths_of(found: &Match) -> Match {
    let mut paths: Vec<_> = found.paths().cloned().collect();
    paths.sort_by_key(|path| !path.is_identity());
    Match {
        unknown: found.unknown.clone(),
        conditions: paths.into_iter().map(Condition::Path).collect(),
    }
}
