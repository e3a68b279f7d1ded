//! Which users may save facts of a type.
//!
//! A rule goes from a fact to the users who may save it: over what was sent and what is stored, as
//! far as it only goes to predecessors, and from there on over what is stored. A user is a public
//! key: the caller's own, or one that has signed the fact.

mod evidence;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use wakeline_store::Error;

use self::evidence::Evidence;
use super::{InvalidRule, SeqsByFact, distribution::intersection::projected, pattern::Pattern};
use crate::{
    fact::{Envelope, Kind, Reference},
    login::user_fact,
    policy_file::{self, AllowedUsers},
    query::Query,
    specification::{Name, Projection, SingleProjection, Specification},
    store::Store,
};

/// Keys that are tried for one fact, the caller's among them.
const MAX_KEYS: usize = 64;

#[derive(Debug)]
pub struct Authorization {
    rules: HashMap<Kind, Vec<Rule>>,
}

#[derive(Debug)]
enum Rule {
    Anybody,
    Nobody,
    Users {
        /// Goes only to predecessors.
        head: Specification,
        rest: RuleTail,
    },
}

#[derive(Debug)]
enum RuleTail {
    /// The users are found: under this label.
    None(Name),
    /// From the facts under these labels, and from the user, on.
    Tail {
        from: Vec<Name>,
        kind: Kind,
        query: Arc<Query>,
    },
}

/// The rules' answer for one fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The fact is stored already.
    Known,
    Accepted {
        /// Because of the caller's own key: the server signs it for them.
        for_caller: bool,
    },
}

/// Why nothing is saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// 403
    #[error("Rejected {} of type {}.", counted(*.count), .kinds.join(", "))]
    Facts { count: usize, kinds: Vec<String> },
    /// 400
    #[error(
        "The fact {0} is named as a predecessor, but it was not found in storage and was not \
         included in the request. Send the full closure of the facts."
    )]
    Missing(Reference),
}

fn counted(count: usize) -> String {
    match count {
        1 => "1 fact".to_owned(),
        count => format!("{count} facts"),
    }
}

impl Authorization {
    pub fn new(rules: &[policy_file::Authorization]) -> Result<Self, InvalidRule> {
        let mut by_kind: HashMap<Kind, Vec<Rule>> = HashMap::new();
        for rule in rules {
            let made = match &rule.who {
                AllowedUsers::Anybody => Rule::Anybody,
                AllowedUsers::Nobody => Rule::Nobody,
                AllowedUsers::Users(specification) => {
                    users_rule(specification).map_err(|reason| {
                        InvalidRule(format!(
                            "authorization {}: {reason}",
                            specification.describe()
                        ))
                    })?
                }
            };
            by_kind.entry(rule.kind.clone()).or_default().push(made);
        }
        Ok(Self { rules: by_kind })
    }

    /// Whether all of it may be saved, and what each fact is, in their order. Each fact comes after
    /// its predecessors. `caller` is the public key of the user who is logged in.
    pub async fn authorize(
        &self,
        store: &dyn Store,
        envelopes: &[Envelope],
        caller: Option<&str>,
    ) -> Result<Result<Vec<Verdict>, Rejection>, Error> {
        let sent: HashMap<&Reference, usize> = envelopes
            .iter()
            .enumerate()
            .map(|(index, envelope)| (&envelope.fact.reference, index))
            .collect();
        let outside = predecessors(envelopes).filter(|one| !sent.contains_key(one));
        let outside: HashSet<&Reference> = outside.collect();
        let mut wanted: Vec<Reference> = envelopes
            .iter()
            .map(|envelope| envelope.fact.reference.clone())
            .collect();
        wanted.extend(outside.into_iter().cloned());
        let found = store.find(wanted.clone()).await?;
        let missing = found.iter().zip(&wanted).skip(envelopes.len());
        if let Some((_, missing)) = missing.into_iter().find(|(at, _)| at.is_none()) {
            return Ok(Err(Rejection::Missing(missing.clone())));
        }
        let mut verdicts: Vec<Option<Verdict>> = found[..envelopes.len()]
            .iter()
            .map(|at| at.map(|_| Verdict::Known))
            .collect();
        self.judge(store, envelopes, caller, &mut verdicts).await?;
        // A fact whose predecessor is rejected is rejected, too.
        let mut rejected = HashSet::new();
        let mut kinds: Vec<String> = Vec::new();
        for (envelope, verdict) in envelopes.iter().zip(&mut verdicts) {
            let mut below = predecessors(std::slice::from_ref(envelope));
            if verdict.is_none() || below.any(|one| rejected.contains(one)) {
                rejected.insert(&envelope.fact.reference);
                let kind = envelope.fact.reference.kind.to_string();
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
        }
        if !rejected.is_empty() {
            let count = rejected.len();
            return Ok(Err(Rejection::Facts { count, kinds }));
        }
        Ok(Ok(verdicts.into_iter().flatten().collect()))
    }

    /// Fills in what the rules accept.
    async fn judge(
        &self,
        store: &dyn Store,
        envelopes: &[Envelope],
        caller: Option<&str>,
        verdicts: &mut [Option<Verdict>],
    ) -> Result<(), Error> {
        let mut asked = Vec::new();
        for (index, envelope) in envelopes.iter().enumerate() {
            let rules = self.rules.get(&envelope.fact.reference.kind);
            for rule in rules.into_iter().flatten() {
                match rule {
                    _ if verdicts[index].is_some() => {}
                    Rule::Anybody => {
                        verdicts[index] = Some(Verdict::Accepted { for_caller: false });
                    }
                    Rule::Nobody => {}
                    Rule::Users { head, rest } => asked.push((index, head, rest)),
                }
            }
        }
        asked.retain(|(index, ..)| verdicts[*index].is_none());
        let mut evidence = Evidence::new(envelopes);
        let heads: Vec<_> = asked
            .iter()
            .map(|(index, head, _)| (*index, *head))
            .collect();
        let rows = evidence.run(store, &heads).await?;
        let mut tails: TailChecks<'_> = HashMap::new();
        for ((index, _, rest), rows) in asked.into_iter().zip(rows) {
            let keys = keys(&envelopes[index], caller);
            match rest {
                RuleTail::None(label) => {
                    for row in &rows {
                        let key = row.get(label).and_then(|one| evidence.public_key(one));
                        if let Some(key) = key.filter(|key| keys.contains(&&**key)) {
                            accept(&mut verdicts[index], caller == Some(&*key));
                        }
                    }
                }
                RuleTail::Tail { from, kind, query } => {
                    let checks = tails
                        .entry(Arc::as_ptr(query).addr())
                        .or_insert_with(|| (query, Vec::new()));
                    for row in &rows {
                        let given: Option<Vec<Reference>> =
                            from.iter().map(|label| row.get(label).cloned()).collect();
                        for (given, key) in given
                            .iter()
                            .flat_map(|given| keys.iter().map(move |key| (given, *key)))
                        {
                            if let Some(user) = user_fact(kind, key) {
                                let mut given = given.clone();
                                given.push(user.reference);
                                checks.1.push((index, caller == Some(key), given));
                            }
                        }
                    }
                }
            }
        }
        for (query, checks) in tails.into_values() {
            for (index, for_caller) in held(store, query, checks).await? {
                accept(&mut verdicts[index], for_caller);
            }
        }
        Ok(())
    }
}

/// A fact, whether it is about the caller, and the facts to begin with.
type UserCheck = (usize, bool, Vec<Reference>);

/// By the address of their query, so that each query runs once.
type TailChecks<'a> = HashMap<usize, (&'a Arc<Query>, Vec<UserCheck>)>;

fn accept(verdict: &mut Option<Verdict>, for_caller: bool) {
    let before = matches!(verdict, Some(Verdict::Accepted { for_caller: true }));
    *verdict = Some(Verdict::Accepted {
        for_caller: before || for_caller,
    });
}

/// The questions that are answered by yes.
async fn held(
    store: &dyn Store,
    query: &Arc<Query>,
    checks: Vec<UserCheck>,
) -> Result<Vec<(usize, bool)>, Error> {
    let facts = checks.iter().flat_map(|(_, _, given)| given);
    let seqs = SeqsByFact::find(store, facts).await?;
    let mut about = Vec::new();
    let mut asked = Vec::new();
    for (index, for_caller, given) in checks {
        // A given that is not stored has no successors.
        if let Some(given) = given.iter().map(|one| seqs.of(one)).collect() {
            about.push((index, for_caller));
            asked.push(given);
        }
    }
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let held = store.matches(query.clone(), asked).await?;
    let yes = about.into_iter().zip(held).filter(|(_, holds)| *holds);
    Ok(yes.map(|(about, _)| about).collect())
}

fn keys<'a>(envelope: &'a Envelope, caller: Option<&'a str>) -> Vec<&'a str> {
    let signed = envelope.signatures.iter().map(|signature| &*signature.key);
    caller.into_iter().chain(signed).take(MAX_KEYS).collect()
}

fn predecessors(envelopes: &[Envelope]) -> impl Iterator<Item = &Reference> {
    let roles = envelopes
        .iter()
        .flat_map(|envelope| &envelope.fact.predecessors);
    roles.flat_map(|(_, predecessors)| predecessors.references())
}

/// A rule of a specification from the fact to its users.
fn users_rule(specification: &Specification) -> Result<Rule, String> {
    let Some((label, kind)) = projected(specification) else {
        return Err("the users must be one label of the specification".into());
    };
    let split = specification.split_before_successors();
    let Some(head) = split.head else {
        return Err(
            "it must start with a step to a predecessor: a new fact has no successors".into(),
        );
    };
    let Some(tail) = split.tail else {
        return Ok(Rule::Users {
            head,
            rest: RuleTail::None(label),
        });
    };
    let pattern = Pattern::of(&tail).map_err(|error| error.to_string())?;
    let user = pattern
        .variable(&label)
        .ok_or("the users' label is not known")?;
    let givens = tail.givens.iter().map(|given| given.label.name.clone());
    let from: Vec<Name> = givens.collect();
    let mut roots: Vec<usize> = (0..from.len()).collect();
    if roots.contains(&user) {
        return Err("the users must be found, not given, where conditions follow".into());
    }
    roots.push(user);
    let head = Specification {
        projection: Projection::Single(SingleProjection::Fact(label)),
        ..head
    };
    Ok(Rule::Users {
        head,
        rest: RuleTail::Tail {
            from,
            kind,
            query: pattern.from(&roots),
        },
    })
}
