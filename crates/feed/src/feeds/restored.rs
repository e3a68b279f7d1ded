//! The feeds that upstream lacks: what stands behind a fact that was brought back.
//!
//! Of `p [!E { d [!E { r }] }] c` upstream has the feeds `p d [!E r]`, `p d r` and `p [!E d] c`.
//! When an `r` brings a `p` back, none of them has a new tuple with its `c`, and none has what is
//! said of it afterwards. So for each place where a fact can be brought back the specification is
//! walked once more, with what brings back as a part of the tuple: `p [!E { d [!E { r }] }] d r c`.
//! The condition stays as it was written: what was deleted again is in no tuple. With it a tuple
//! also stands for those that other facts brought back, so that places do not multiply.

use super::{
    MAX_FEEDS, MAX_PARTS, TooManyFeeds,
    build::{Tuple, parts, paths_of},
};
use crate::{
    query::Query,
    specification::{Component, Condition, Existential, Match, Projection, Specification},
};

/// What a specification has besides upstream's feeds. Nothing where that would be too much: it is
/// served as upstream serves it, and not refused for what upstream does not have.
pub fn build(specification: &Specification) -> Vec<Specification> {
    let specification = specification.distinct();
    let (matches, projection) = (&specification.matches, &specification.projection);
    if !brings_back(matches, projection) {
        return Vec::new();
    }
    let mut feeds = every_walk(&specification).unwrap_or_default();
    feeds.retain(|feed| feed.seeks_successors() && Query::of_specification(feed).is_ok());
    feeds
}

fn every_walk(specification: &Specification) -> Result<Vec<Specification>, TooManyFeeds> {
    let mut walk = RestoredWalk {
        feeds: Vec::new(),
        parts: MAX_PARTS,
        before: None,
    };
    for place in 0.. {
        walk.before = Some(place);
        let mut row = RestoredRow {
            tuple: Tuple::first(specification),
            is_restored: false,
            has_more: false,
        };
        walk.matches(&mut row, &specification.matches)?;
        walk.end(&row, &specification.projection)?;
        if walk.before.is_some() {
            break;
        }
    }
    Ok(walk.feeds)
}

/// A tuple on the way.
#[derive(Clone)]
struct RestoredRow {
    tuple: Tuple,
    /// The condition has a restoring negation.
    is_restored: bool,
    /// And something behind it.
    has_more: bool,
}

struct RestoredWalk {
    feeds: Vec<Specification>,
    /// How many more may be made, on the way too.
    parts: usize,
    /// Places where something is brought back that come before the one of this walk; `None` behind
    /// that one.
    before: Option<usize>,
}

impl RestoredWalk {
    fn matches(&mut self, row: &mut RestoredRow, matches: &[Match]) -> Result<(), TooManyFeeds> {
        for found in matches {
            let at = row.tuple.feed.matches.len();
            self.add(row, std::slice::from_ref(&paths_of(found)))?;
            row.has_more |= row.is_restored;
            for condition in found.existentials() {
                if condition.exists {
                    self.matches(row, &condition.matches)?;
                } else {
                    self.negation(row, condition, at)?;
                }
            }
        }
        Ok(())
    }

    fn negation(
        &mut self,
        row: &mut RestoredRow,
        condition: &Existential,
        at: usize,
    ) -> Result<(), TooManyFeeds> {
        let proofs = proofs(condition);
        for proof in &proofs {
            self.spend(parts(&proof.matches))?;
        }
        // A client that has a fact which was brought back needs the facts that take it away again,
        // as upstream's feeds have them for a fact that was never away.
        if row.is_restored {
            for proof in &proofs {
                let mut proven = row.clone();
                self.add(&mut proven, &proof.matches)?;
                self.emit(&proven)?;
            }
        }
        let written = row.tuple.written(condition);
        row.tuple.feed.matches[at]
            .conditions
            .push(Condition::Existential(written));
        for proof in proofs.iter().filter(|proof| proof.brings_back()) {
            match self.before {
                Some(0) => {
                    self.before = None;
                    row.is_restored = true;
                    self.add(row, &proof.matches)?;
                }
                Some(before) => self.before = Some(before - 1),
                None => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, row: &RestoredRow, projection: &Projection) -> Result<(), TooManyFeeds> {
        if row.has_more {
            self.emit(row)?;
        }
        for (_, component) in projection.components() {
            let Component::Collection {
                matches,
                projection,
            } = component
            else {
                continue;
            };
            // Upstream collects from what is brought back too, unless in there something can be
            // brought back again.
            if !row.is_restored || brings_back(matches, projection) {
                let mut child = row.clone();
                self.matches(&mut child, matches)?;
                self.end(&child, projection)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, row: &mut RestoredRow, matches: &[Match]) -> Result<(), TooManyFeeds> {
        self.spend(parts(matches))?;
        for found in matches {
            row.tuple.use_givens(found);
            row.tuple.feed.matches.push(found.clone());
        }
        Ok(())
    }

    fn emit(&mut self, row: &RestoredRow) -> Result<(), TooManyFeeds> {
        if self.feeds.len() == MAX_FEEDS {
            return Err(TooManyFeeds);
        }
        self.spend(parts(&row.tuple.feed.matches))?;
        self.feeds.push(row.tuple.feed.clone());
        Ok(())
    }

    fn spend(&mut self, parts: usize) -> Result<(), TooManyFeeds> {
        self.parts = self.parts.checked_sub(parts).ok_or(TooManyFeeds)?;
        Ok(())
    }
}

impl Tuple {
    /// The condition with all that is in it.
    fn written(&mut self, condition: &Existential) -> Existential {
        let mut matches = Vec::new();
        self.write(&condition.matches, &mut matches);
        Existential {
            exists: false,
            matches,
        }
    }

    fn write(&mut self, matches: &[Match], into: &mut Vec<Match>) {
        for found in matches {
            let at = into.len();
            into.push(paths_of(found));
            self.use_givens(found);
            for condition in found.existentials() {
                if condition.exists {
                    self.write(&condition.matches, into);
                } else {
                    let inner = self.written(condition);
                    into[at].conditions.push(Condition::Existential(inner));
                }
            }
        }
    }
}

/// Facts that prove that something holds, or does not, which must not exist.
struct Proof {
    matches: Vec<Match>,
    negations: usize,
}

impl Proof {
    fn brings_back(&self) -> bool {
        self.negations.is_multiple_of(2)
    }
}

fn proofs(condition: &Existential) -> Vec<Proof> {
    let mut proofs = Vec::new();
    prove(&condition.matches, Vec::new(), 1, &mut proofs);
    proofs
}

fn prove(matches: &[Match], mut before: Vec<Match>, negations: usize, proofs: &mut Vec<Proof>) {
    prove_each(matches, &mut before, negations, proofs);
    proofs.push(Proof {
        matches: before,
        negations,
    });
}

fn prove_each(
    matches: &[Match],
    before: &mut Vec<Match>,
    negations: usize,
    proofs: &mut Vec<Proof>,
) {
    for found in matches {
        before.push(paths_of(found));
        for condition in found.existentials() {
            if condition.exists {
                prove_each(&condition.matches, before, negations, proofs);
            } else {
                prove(&condition.matches, before.clone(), negations + 1, proofs);
            }
        }
    }
}

/// Whether a fact can be brought back in there.
fn brings_back(matches: &[Match], projection: &Projection) -> bool {
    let in_components = |(_, component): &(_, Component)| match component {
        Component::Collection {
            matches,
            projection,
        } => brings_back(matches, projection),
        Component::Single(_) => false,
    };
    matches.iter().any(|found| is_negated_twice(found, 0))
        || projection.components().iter().any(in_components)
}

fn is_negated_twice(found: &Match, negations: usize) -> bool {
    found.existentials().any(|condition| {
        let negations = negations + usize::from(!condition.exists);
        let mut inner = condition.matches.iter();
        negations == 2 || inner.any(|found| is_negated_twice(found, negations))
    })
}
