//! Which users may follow which feeds: the rules `share … with …`.
//!
//! A feed is served to a user if a rule shares its shape, or one that contains it, and admits the
//! user for the feed's givens; or if several rules together share it. The rules are checked again
//! whenever something is served, so a fact that a rule needs can come later, and can be removed.

mod composition;
mod decision;
mod gate;
pub mod intersection;
mod loading;
mod rule;
mod shape;

use std::collections::{HashMap, HashSet};

use wakeline_store::Error;

use self::{
    composition::{RuleFeed, StartPoints},
    rule::{Admission, Audience, LoadQuery, Rule, SharedFeed},
};
use super::InvalidRule;
use crate::{
    fact::{Kind, Reference},
    policy_file,
    skeleton::Skeleton,
    specification::Specification,
    store::{Seq, Store},
};

pub use decision::{Code, DecideError, Decision, FeedOffer, Verdict};
pub use gate::Gate;

/// Ways that are tried to lay the inputs of a rule onto givens of a feed.
const MAX_ASSIGNMENTS: usize = 1_000;

#[derive(Debug)]
pub struct Distribution {
    rules: Vec<Rule>,
    /// By type, those for everyone first.
    loads: HashMap<Kind, Vec<LoadQuery>>,
}

/// Whether a feed is served to a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Granted,
    Denied { code: Code, reason: String },
}

/// A user, with the seq of their fact if it is stored.
#[derive(Clone, Copy, Debug)]
struct LocatedUser<'a> {
    fact: &'a Reference,
    seq: Option<Seq>,
}

impl Distribution {
    pub fn new(rules: &[policy_file::Distribution]) -> Result<Self, InvalidRule> {
        let rules = rules
            .iter()
            .map(|rule| {
                Rule::new(&rule.share, rule.with.as_ref()).map_err(|InvalidRule(reason)| {
                    InvalidRule(format!("share {}: {reason}", rule.share.describe()))
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut loads: HashMap<Kind, Vec<LoadQuery>> = HashMap::new();
        for load in rules
            .iter()
            .flat_map(|rule| &rule.feeds)
            .flat_map(|feed| &feed.loads)
        {
            let known = loads.entry(load.query.variables[0].clone()).or_default();
            if !known.iter().any(|one| one.query == load.query) {
                known.push(load.clone());
            }
        }
        for known in loads.values_mut() {
            known.sort_by_key(|load| load.for_user);
        }
        Ok(Self { rules, loads })
    }

    /// Whether a feed from these facts on is served to a user now. `given` is in the order of the
    /// feed's givens.
    pub async fn answer(
        &self,
        store: &dyn Store,
        feed: &Specification,
        given: &[Reference],
        user: Option<&Reference>,
    ) -> Result<Answer, Error> {
        let mut answers = self.answers(store, &[(feed, given)], user).await?;
        Ok(answers.remove(0))
    }

    async fn answer_to(
        &self,
        store: &dyn Store,
        feed: &Specification,
        given: &LocatedGivens<'_>,
        user: Option<LocatedUser<'_>>,
    ) -> Result<Answer, Error> {
        let target = Skeleton::of(feed);
        let mut reasons = Vec::new();
        for (rule, shared) in self.sharing(&target) {
            for binding in shape::bindings(&shared.skeleton, &target) {
                let (Audience::Users { described, .. }, Some(user)) = (&rule.with, user) else {
                    if matches!(rule.with, Audience::Everyone) {
                        return Ok(Answer::Granted);
                    }
                    if reasons.is_empty() {
                        reasons.push("User is not logged in.".to_owned());
                    }
                    continue;
                };
                let admitted = admits(store, shared, given, user, &[binding]).await?;
                if admitted == [true] {
                    return Ok(Answer::Granted);
                }
                reasons.push(format!("The user does not match {described}"));
            }
        }
        if self.is_composed(store, &target, given, user).await? {
            return Ok(Answer::Granted);
        }
        Ok(self.denied(feed, &target, &reasons, user.is_some()))
    }

    /// The feeds of rules that have the target's shape, or contain it.
    fn sharing(&self, target: &Skeleton) -> impl Iterator<Item = (&Rule, &SharedFeed)> {
        let feeds = self
            .rules
            .iter()
            .flat_map(|rule| rule.feeds.iter().map(move |feed| (rule, feed)));
        feeds.filter(move |(_, shared)| {
            shape::is_equal(&shared.skeleton, target) || shape::contains(&shared.skeleton, target)
        })
    }

    fn denied(
        &self,
        feed: &Specification,
        target: &Skeleton,
        reasons: &[String],
        has_user: bool,
    ) -> Answer {
        let described = feed.describe();
        let (code, why) = if !reasons.is_empty() {
            let code = match has_user {
                true => Code::PrincipalExcluded,
                false => Code::NotAuthenticated,
            };
            (code, reasons.join("\n"))
        } else if let Some(rule) = self.nearest(target) {
            let why = format!(
                "The specification is more restrictive than the distribution rule {}",
                rule.specification.describe()
            );
            (Code::SpecMoreRestrictiveThanRule, why)
        } else {
            (
                Code::NoMatchingRule,
                "No rules apply to this feed.".to_owned(),
            )
        };
        Answer::Denied {
            code,
            reason: format!("Cannot distribute to {described}{why}"),
        }
    }

    fn nearest(&self, target: &Skeleton) -> Option<&SharedFeed> {
        let mut feeds = self.rules.iter().flat_map(|rule| &rule.feeds);
        feeds.find(|feed| shape::is_narrower(&feed.skeleton, target))
    }

    async fn is_composed(
        &self,
        store: &dyn Store,
        target: &Skeleton,
        given: &LocatedGivens<'_>,
        user: Option<LocatedUser<'_>>,
    ) -> Result<bool, Error> {
        let mut rule_feeds = Vec::new();
        for shared in self.rules.iter().flat_map(|rule| &rule.feeds) {
            let from = match (&shared.admission, user) {
                (Admission::Everyone, _) => StartPoints::Anywhere,
                (Admission::Users { .. }, None) => continue,
                (Admission::Users { .. }, Some(user)) => {
                    let assigned = assignments(&shared.skeleton, target);
                    let bindings: Vec<_> =
                        assigned.iter().map(|(inputs, _)| inputs.clone()).collect();
                    let held = admits(store, shared, given, user, &bindings).await?;
                    let admitted = assigned.into_iter().zip(held).filter(|(_, holds)| *holds);
                    StartPoints::Givens(admitted.map(|((_, facts), _)| facts).collect())
                }
            };
            rule_feeds.push(RuleFeed {
                skeleton: &shared.skeleton,
                from,
            });
        }
        Ok(composition::covers(target, &rule_feeds))
    }

    fn loads(&self, kind: &Kind) -> &[LoadQuery] {
        self.loads.get(kind).map_or(&[], Vec::as_slice)
    }

    /// The facts that may make a denied feed be served: they are watched while it is denied.
    #[must_use]
    pub fn gates(&self, feed: &Specification, given: &[Reference]) -> Vec<Gate> {
        let target = Skeleton::of(feed);
        let mut gates = Vec::new();
        let mut seen = HashSet::new();
        let feeds = self.rules.iter().flat_map(|rule| &rule.feeds);
        for shared in feeds.filter(|shared| !shared.gates.is_empty()) {
            for (inputs, _) in assignments(&shared.skeleton, &target) {
                let bound = inputs.iter().map(|index| given.get(*index).cloned());
                let Some(bound) = bound.collect::<Option<Vec<Reference>>>() else {
                    continue;
                };
                let found = shared.gates.iter().filter_map(|gate| gate.bound(&bound));
                gates.extend(found.filter(|gate| seen.insert(gate.clone())));
            }
        }
        gates
    }
}

/// The facts that a feed begins with, and where they are stored.
struct LocatedGivens<'a> {
    references: &'a [Reference],
    seqs: Vec<Option<Seq>>,
}

/// For each way to lay the rule's inputs onto the feed's givens, whether it admits the user.
async fn admits(
    store: &dyn Store,
    shared: &SharedFeed,
    given: &LocatedGivens<'_>,
    user: LocatedUser<'_>,
    bindings: &[Vec<usize>],
) -> Result<Vec<bool>, Error> {
    let Admission::Users { input, ask } = &shared.admission else {
        return Ok(vec![true; bindings.len()]);
    };
    let is_user = |binding: &Vec<usize>| {
        input.is_none_or(|input| given.references.get(binding[input]) == Some(user.fact))
    };
    let mut admitted: Vec<bool> = bindings.iter().map(is_user).collect();
    let Some(ask) = ask else {
        return Ok(admitted);
    };
    let mut places = Vec::new();
    let mut asked = Vec::new();
    for (place, binding) in bindings.iter().enumerate() {
        let facts = binding
            .iter()
            .map(|index| given.seqs.get(*index).copied().flatten());
        let facts = facts.chain(ask.for_user.then_some(user.seq));
        match facts.collect::<Option<Vec<Seq>>>() {
            Some(facts) if admitted[place] => {
                places.push(place);
                asked.push(facts);
            }
            _ => admitted[place] = false,
        }
    }
    if !asked.is_empty() {
        let held = store.matches(ask.query.clone(), asked).await?;
        for (place, holds) in places.into_iter().zip(held) {
            admitted[place] = holds;
        }
    }
    Ok(admitted)
}

/// All ways to lay the inputs of a rule's feed onto those of a target, by type: the givens, and the
/// target's facts for them.
fn assignments(rule: &Skeleton, target: &Skeleton) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut ways = vec![(Vec::new(), Vec::new())];
    for input in &rule.inputs {
        let wanted = rule.kind(input.fact_index);
        let mut longer = Vec::new();
        for (givens, facts) in &ways {
            for theirs in &target.inputs {
                if target.kind(theirs.fact_index) == wanted
                    && !facts.contains(&theirs.fact_index)
                    && longer.len() < MAX_ASSIGNMENTS
                {
                    let (mut givens, mut facts) = (givens.clone(), facts.clone());
                    givens.push(theirs.input_index);
                    facts.push(theirs.fact_index);
                    longer.push((givens, facts));
                }
            }
        }
        ways = longer;
    }
    ways
}
