//! From the text of a specification to feeds that are known by their hashes.

use std::{sync::Arc, time::Instant};

use super::Feeds;
use crate::{
    declaration::{
        self,
        facts::{self, NamedFact},
    },
    error::Error,
    fact::{Envelope, Reference},
    feed::Feed,
    login::Caller,
    policy::distribution::{Code, Decision, Verdict},
    query::Query,
    specification::{
        Label, Name, Specification,
        request::{self, Request, TrailingText},
    },
};

/// The name of the caller's own fact in a text.
const ME: &str = "me";

/// The feeds of a specification, and whether the caller may have them.
#[derive(Debug)]
pub struct DeclaredFeeds {
    pub feeds: Vec<Arc<Feed>>,
    pub verdict: Verdict,
    pub code: Option<Code>,
    pub reason: String,
}

/// A specification, and the facts that it begins with.
#[derive(Debug)]
pub(super) struct FeedRequest {
    pub(super) specification: Specification,
    pub(super) given: Vec<Reference>,
}

impl Feeds {
    /// Each feed is kept, so that every node knows it, also after a restart.
    pub async fn declare(&self, caller: &Caller, text: &str) -> Result<DeclaredFeeds, Error> {
        let FeedRequest {
            specification,
            given,
        } = self.request(caller, text, TrailingText::Ignored).await?;
        let decision = match &self.policies {
            None => Decision::unlimited(&specification, &given)
                .map_err(|error| Error::invalid(error.to_string()))?,
            Some(policies) => {
                let user = self.reader(caller).await?;
                let rules = &policies.distribution;
                rules
                    .decide(&*self.store, &specification, &given, user.as_ref())
                    .await?
            }
        };
        let feeds: Vec<Feed> = decision
            .feeds
            .into_iter()
            .map(|granted| {
                let query = Query::of_specification(&granted.specification)
                    .map_err(|error| Error::invalid(error.to_string()))?;
                Ok(Feed {
                    hash: granted.hash.into(),
                    specification: granted.specification,
                    query: Arc::new(query),
                    given: granted.given,
                    owner: granted.owner,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(DeclaredFeeds {
            feeds: self.definitions.define(feeds, Instant::now()).await?,
            verdict: decision.verdict,
            code: decision.code,
            reason: decision.reason,
        })
    }

    /// Reads a text of declarations and a specification, and checks it against the purge
    /// conditions.
    pub(super) async fn request(
        &self,
        caller: &Caller,
        text: &str,
        trailing: TrailingText,
    ) -> Result<FeedRequest, Error> {
        let known = self.caller_fact(caller).await?;
        let Request {
            declarations,
            specification,
        } = request::parse(text, &labels(&known), trailing)?;
        let declared = facts::resolve(&declarations, known)?;
        let given = given(&specification, &declared);
        if let Some(policies) = &self.policies {
            policies
                .purge
                .check(&specification)
                .map_err(|unfit| Error::invalid(unfit.to_string()))?;
        }
        Ok(FeedRequest {
            specification,
            given,
        })
    }

    /// Saves the facts that are declared.
    pub async fn write(&self, caller: &Caller, text: &str) -> Result<(), Error> {
        let known = self.caller_fact(caller).await?;
        let declarations = declaration::parse(text, &labels(&known))?;
        let facts = facts::saved(facts::resolve(&declarations, known)?)?;
        let envelopes = facts.into_iter().map(Envelope::unsigned);
        self.save(caller, envelopes.collect()).await
    }

    async fn caller_fact(&self, caller: &Caller) -> Result<Vec<NamedFact>, Error> {
        let user = self.user(caller).await?;
        let me = |user: Arc<crate::login::User>| NamedFact {
            name: ME.into(),
            reference: user.fact.reference.clone(),
            fact: Some(user.fact.clone()),
        };
        Ok(user.map(me).into_iter().collect())
    }
}

fn labels(known: &[NamedFact]) -> Vec<Label> {
    known
        .iter()
        .map(|known| Label {
            name: known.name.clone(),
            kind: known.reference.kind.clone(),
        })
        .collect()
}

/// The facts of the givens, by name: each is declared, as the reading of the text has found.
fn given(specification: &Specification, declared: &[NamedFact]) -> Vec<Reference> {
    let fact = |name: &Name| {
        declared
            .iter()
            .rev()
            .find(|declared| declared.name == *name)
    };
    specification
        .givens
        .iter()
        .filter_map(|given| Some(fact(&given.label.name)?.reference.clone()))
        .collect()
}
