//! Feeds: the lists of tuples that a specification is cut into. A client needs all facts of a
//! tuple.

mod build;
mod context;
mod restored;

use std::collections::HashSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;
use sha2::{Digest as _, Sha512};

use crate::{
    fact::Reference,
    skeleton::Skeleton,
    specification::{Name, Specification},
};

pub use build::build;
pub use restored::build as build_added;

/// Conditions within conditions multiply with collections: a short text could ask for millions.
pub const MAX_FEEDS: usize = 500;
/// Matches and steps of all feeds of a specification: each feed has again what others have.
pub const MAX_PARTS: usize = 20_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The specification makes more than {MAX_FEEDS} feeds, or feeds of more than {MAX_PARTS} parts"
)]
pub struct TooManyFeeds;

/// A feed of given facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feed {
    pub hash: String,
    pub specification: Specification,
    /// In the order of the feed's givens, which is not that of what it was built from.
    pub given: Vec<Reference>,
    /// Upstream does not have it. The rules' answer for a specification is about the other feeds.
    pub is_added: bool,
}

/// The feeds of a specification from these facts on, one for each of its givens; each feed once,
/// upstream's first.
pub fn of(specification: &Specification, given: &[Reference]) -> Result<Vec<Feed>, TooManyFeeds> {
    let mut feeds = Vec::new();
    let mut seen = HashSet::new();
    let upstreams = build(specification)?.into_iter().map(|feed| (feed, false));
    let added = build_added(specification);
    let added = added.into_iter().map(|feed| (feed, true));
    for (feed, is_added) in upstreams.chain(added) {
        let given = bind(&feed, specification, given);
        let hash = hash(&feed, &given);
        if seen.insert(hash.clone()) {
            feeds.push(Feed {
                hash,
                specification: feed,
                given,
                is_added,
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

/// The hashed form of a feed; all fields in the order of canonical JSON.
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
