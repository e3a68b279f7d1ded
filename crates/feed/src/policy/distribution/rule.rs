//! A rule: the feeds that it shares, and the users that it shares them with.

use std::sync::Arc;

use super::{gate::GateTemplate, intersection::projected};
use crate::{
    feeds,
    login::USER,
    policy::{InvalidRule, pattern::Pattern},
    query::Query,
    skeleton::Skeleton,
    specification::{Name, Specification},
};

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) feeds: Vec<SharedFeed>,
    pub(super) with: Audience,
}

/// A feed of what a rule shares.
#[derive(Debug)]
pub(super) struct SharedFeed {
    pub(super) specification: Specification,
    pub(super) skeleton: Skeleton,
    /// Whether a user is among those it is shared with.
    pub(super) admission: Admission,
    /// The facts that can admit a user.
    pub(super) gates: Vec<GateTemplate>,
    /// For each fact of the feed, the query whether a user may load it.
    pub(super) loads: Vec<LoadQuery>,
}

#[derive(Debug)]
pub(super) enum Audience {
    Everyone,
    Users {
        specification: Specification,
        described: String,
    },
}

#[derive(Debug)]
pub(super) enum Admission {
    Everyone,
    Users {
        /// The feed's input that the user must be. `None` where the users are not named by one:
        /// with nothing asked it can be any, for the rule names them by a given that this feed
        /// lacks.
        input: Option<usize>,
        ask: Option<AdmissionQuery>,
    },
}

#[derive(Debug)]
pub(super) struct AdmissionQuery {
    /// From the feed's inputs, in their order, and the user on where `for_user`.
    pub(super) query: Arc<Query>,
    pub(super) for_user: bool,
}

/// Facts at one place of a feed that is shared.
#[derive(Clone, Debug)]
pub(super) struct LoadQuery {
    /// From the fact on, and from the user where `for_user`.
    pub(super) query: Arc<Query>,
    pub(super) for_user: bool,
}

impl Rule {
    pub(super) fn new(
        share: &Specification,
        with: Option<&Specification>,
    ) -> Result<Self, InvalidRule> {
        let built = feeds::build(share).map_err(|error| InvalidRule(error.to_string()))?;
        let with = match with {
            None => Audience::Everyone,
            Some(users) => {
                check_users(share, users)?;
                Audience::Users {
                    specification: users.clone(),
                    described: users.describe(),
                }
            }
        };
        let mut feeds = built
            .into_iter()
            .map(|feed| SharedFeed::new(feed, share, &with))
            .collect::<Result<Vec<_>, _>>()?;
        // A feed that is too large together with the users is not shared; the rule is valid without
        // it.
        let added = feeds::build_added(share).into_iter();
        feeds.extend(added.filter_map(|feed| SharedFeed::new(feed, share, &with).ok()));
        Ok(Self { feeds, with })
    }
}

fn check_users(share: &Specification, users: &Specification) -> Result<(), InvalidRule> {
    let Some((_, kind)) = projected(users) else {
        return Err(InvalidRule(
            "the users must be one label of their specification".into(),
        ));
    };
    if &*kind != USER {
        return Err(InvalidRule(format!(
            "the users must be of type {USER}, not {kind}"
        )));
    }
    let kinds = |one: &Specification| -> Vec<_> {
        let givens = one.givens.iter().map(|given| given.label.kind.clone());
        givens.collect()
    };
    if kinds(share) != kinds(users) {
        return Err(InvalidRule(
            "what is shared and the users must have givens of the same types in the same order"
                .into(),
        ));
    }
    Ok(())
}

impl SharedFeed {
    fn new(
        feed: Specification,
        share: &Specification,
        with: &Audience,
    ) -> Result<Self, InvalidRule> {
        let skeleton = Skeleton::of(&feed);
        let users = match with {
            Audience::Everyone => None,
            Audience::Users { specification, .. } => Some(specification),
        };
        // The givens of the users are the givens of the shared specification, in the same order.
        let place = |name: &Name| {
            let mut givens = share.givens.iter();
            givens.position(|given| given.label.name == *name)
        };
        let inputs = skeleton.inputs.iter();
        let places: Option<Vec<usize>> = inputs
            .map(|input| place(&feed.givens.get(input.input_index)?.label.name))
            .collect();
        let places = places
            .ok_or_else(|| InvalidRule("a feed has a given that it was not built of".into()))?;
        Ok(Self {
            admission: Admission::new(&places, users)?,
            gates: match users {
                Some(users) => GateTemplate::all(users, &places)?,
                None => Vec::new(),
            },
            loads: super::loading::loads(&feed, share, users)?,
            specification: feed,
            skeleton,
        })
    }
}

impl Admission {
    fn new(bound: &[usize], users: Option<&Specification>) -> Result<Self, InvalidRule> {
        let Some(users) = users else {
            return Ok(Self::Everyone);
        };
        let pattern = Pattern::of(users).map_err(|error| InvalidRule(error.to_string()))?;
        let user = projected(users).and_then(|(label, _)| pattern.variable(&label));
        let user = user.ok_or_else(|| InvalidRule("the users' label is not known".into()))?;
        let input = bound.iter().position(|given| *given == user);
        let query = pattern.query();
        let is_plain = user < users.givens.len()
            && query.edges.is_empty()
            && query.equals.is_empty()
            && query.conditions.is_empty();
        let ask = (!is_plain).then(|| {
            let for_user = input.is_none();
            let mut roots = bound.to_vec();
            roots.extend(for_user.then_some(user));
            AdmissionQuery {
                query: pattern.from(&roots),
                for_user,
            }
        });
        Ok(Self::Users { input, ask })
    }
}
