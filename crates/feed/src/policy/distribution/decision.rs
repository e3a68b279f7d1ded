//! The answer to a client that declares feeds.

use wakeline_store::Error;

use super::{
    Answer, Distribution, LocatedGivens, LocatedUser,
    intersection::{DISTRIBUTION_USER, intersect},
    rule::Audience,
    shape,
};
use crate::{
    fact::Reference,
    feeds::{self, Feed, TooManyFeeds},
    policy::SeqsByFact,
    skeleton::Skeleton,
    specification::Specification,
    store::Store,
};

/// Why a feed is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// A rule shares it, but the caller is anonymous.
    NotAuthenticated,
    /// A rule shares it, but not with this user.
    PrincipalExcluded,
    NoMatchingRule,
    SpecMoreRestrictiveThanRule,
}

impl Code {
    /// As clients know it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotAuthenticated => "not-authenticated",
            Self::PrincipalExcluded => "principal-excluded",
            Self::NoMatchingRule => "no-matching-rule",
            Self::SpecMoreRestrictiveThanRule => "spec-more-restrictive-than-rule",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Authorized,
    /// Not yet, but a fact can come that admits the user.
    Reactive,
    Denied,
}

impl Verdict {
    /// As clients know it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authorized => "authorized",
            Self::Reactive => "reactive",
            Self::Denied => "denied",
        }
    }
}

/// One answer for all feeds of a specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// `None` where it is authorized.
    pub code: Option<Code>,
    pub reason: String,
    pub feeds: Vec<FeedOffer>,
}

/// A feed in the answer to a client. Whether it is served then is decided by
/// [`Distribution::answer`] with this specification and these facts, whatever the verdict was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedOffer {
    pub hash: String,
    pub specification: Specification,
    /// In the order of the specification's givens.
    pub given: Vec<Reference>,
    /// The one user that it is for.
    pub owner: Option<Reference>,
}

#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    #[error(transparent)]
    TooManyFeeds(#[from] TooManyFeeds),
    #[error(transparent)]
    Store(#[from] Error),
}

impl Decision {
    /// Without any rules everything is served.
    pub fn unlimited(
        specification: &Specification,
        given: &[Reference],
    ) -> Result<Self, TooManyFeeds> {
        Ok(Self::authorized(feeds::of(specification, given)?))
    }

    fn authorized(feeds: Vec<Feed>) -> Self {
        Self {
            verdict: Verdict::Authorized,
            code: None,
            reason: "Distribution authorized.".to_owned(),
            feeds: granted(feeds, None),
        }
    }
}

fn granted(feeds: Vec<Feed>, owner: Option<&Reference>) -> Vec<FeedOffer> {
    let feeds = feeds.into_iter().map(|feed| FeedOffer {
        hash: feed.hash,
        specification: feed.specification,
        given: feed.given,
        owner: owner.cloned(),
    });
    feeds.collect()
}

impl Distribution {
    /// Decides for all feeds of a specification from these facts on.
    ///
    /// Where the user is not admitted but a fact can come that does, each rule that could makes
    /// feeds of its own, named as upstream names those of the narrowed specification. What they
    /// deliver is the feed itself, once the user is admitted.
    pub async fn decide(
        &self,
        store: &dyn Store,
        specification: &Specification,
        given: &[Reference],
        user: Option<&Reference>,
    ) -> Result<Decision, DecideError> {
        let mut feeds = feeds::of(specification, given)?;
        let answers = self.answers(store, &with_givens(&feeds), user).await?;
        let Some((code, reason)) = refused(&feeds, &answers) else {
            let mut answers = answers.into_iter();
            feeds.retain(|_| answers.next() == Some(Answer::Granted));
            return Ok(Decision::authorized(feeds));
        };
        feeds.retain(|feed| !feed.is_added || self.is_shared(&feed.specification));
        let narrowed = match user {
            Some(user) => self.narrowed(specification, given, &feeds, user)?,
            None => Vec::new(),
        };
        let (verdict, feeds) = if narrowed.is_empty() {
            (Verdict::Denied, granted(feeds, None))
        } else {
            (Verdict::Reactive, narrowed)
        };
        Ok(Decision {
            verdict,
            code: Some(code),
            reason,
            feeds,
        })
    }

    /// Why not all of these feeds are served to a user now: the text of a 403 for what is read at
    /// once. `None` if they are.
    pub async fn refusal(
        &self,
        store: &dyn Store,
        feeds: &[Feed],
        user: Option<&Reference>,
    ) -> Result<Option<(Code, String)>, Error> {
        let answers = self.answers(store, &with_givens(feeds), user).await?;
        Ok(refused(feeds, &answers))
    }

    /// For each feed, with its givens, whether it is served to a user now.
    pub(super) async fn answers(
        &self,
        store: &dyn Store,
        feeds: &[(&Specification, &[Reference])],
        user: Option<&Reference>,
    ) -> Result<Vec<Answer>, Error> {
        let givens = feeds.iter().flat_map(|(_, given)| *given);
        let seqs = SeqsByFact::find(store, givens.chain(user)).await?;
        let user = user.map(|fact| LocatedUser {
            fact,
            seq: seqs.of(fact),
        });
        let mut answers = Vec::with_capacity(feeds.len());
        for (feed, given) in feeds {
            let givens = LocatedGivens {
                references: given,
                seqs: given.iter().map(|one| seqs.of(one)).collect(),
            };
            answers.push(self.answer_to(store, feed, &givens, user).await?);
        }
        Ok(answers)
    }

    /// Whether there is a rule for it at all.
    fn is_shared(&self, feed: &Specification) -> bool {
        self.sharing(&Skeleton::of(feed)).next().is_some()
    }

    /// The feeds of each rule that shares one of these with users that can still become admitted.
    /// Rules whose user is a given itself are none of them: a given does not become another.
    fn narrowed(
        &self,
        specification: &Specification,
        given: &[Reference],
        feeds: &[Feed],
        user: &Reference,
    ) -> Result<Vec<FeedOffer>, TooManyFeeds> {
        let targets: Vec<Skeleton> = feeds
            .iter()
            .filter(|feed| !feed.is_added)
            .map(|feed| Skeleton::of(&feed.specification))
            .collect();
        let mut given = given.to_vec();
        given.push(user.clone());
        let mut found = Vec::new();
        for rule in &self.rules {
            let Audience::Users {
                specification: users,
                ..
            } = &rule.with
            else {
                continue;
            };
            let mut shared = rule.feeds.iter();
            let is_shared = shared.any(|shared| {
                targets
                    .iter()
                    .any(|target| shape::is_equal(&shared.skeleton, target))
            });
            if !is_shared || users.is_identity() {
                continue;
            }
            if let Some(narrowed) = intersect(specification, users) {
                found.extend(rows_of(feeds, &narrowed, &given, user)?);
            }
        }
        Ok(found)
    }
}

fn with_givens(feeds: &[Feed]) -> Vec<(&Specification, &[Reference])> {
    let feeds = feeds.iter();
    feeds
        .map(|feed| (&feed.specification, &*feed.given))
        .collect()
}

/// The refusal of a specification. Rules are written for upstream's feeds: an added feed is
/// left out where no rule shares it, and nothing else is refused for it.
fn refused(feeds: &[Feed], answers: &[Answer]) -> Option<(Code, String)> {
    let upstreams = feeds.iter().zip(answers).filter(|(feed, _)| !feed.is_added);
    let mut refused: Option<(Code, Vec<&str>)> = None;
    for (_, answer) in upstreams {
        if let Answer::Denied { code, reason } = answer {
            let (worst, reasons) = refused.get_or_insert_with(|| (*code, Vec::new()));
            *worst = (*code).max(*worst);
            reasons.push(reason);
        }
    }
    refused.map(|(code, reasons)| (code, reasons.join("\n\n")))
}

/// The feeds under the names of the narrowed specification. Of its feeds, those that only find
/// whether the user is admitted are left out: they have none of the facts of the specification.
fn rows_of(
    feeds: &[Feed],
    narrowed: &Specification,
    given: &[Reference],
    user: &Reference,
) -> Result<Vec<FeedOffer>, TooManyFeeds> {
    let named = feeds::of(narrowed, given)?;
    let named = named.into_iter().filter_map(|named| {
        let matches = &named.specification.matches;
        // Narrowed matches come first; what follows them is the feed's own.
        let own = feeds.iter().filter(|feed| {
            let own = &feed.specification.matches;
            feed.is_added == named.is_added && matches.len() > own.len() && matches.ends_with(own)
        });
        let own = own.max_by_key(|feed| feed.specification.matches.len());
        own.map(|feed| FeedOffer {
            hash: feeds::hash(&pinned_last(&named.specification), &named.given),
            specification: feed.specification.clone(),
            given: feed.given.clone(),
            owner: Some(user.clone()),
        })
    });
    Ok(named.collect())
}

/// In upstream's order: the path that makes a fact the user comes after the fact's other paths,
/// while our feeds begin with it. The two orders have different hashes.
fn pinned_last(feed: &Specification) -> Specification {
    let mut feed = feed.clone();
    for one in &mut feed.matches {
        let paths = one.paths().count();
        let is_pinned = one
            .paths()
            .next()
            .is_some_and(|path| path.is_identity() && &*path.right_label == DISTRIBUTION_USER);
        if is_pinned && let Some(paths) = one.conditions.get_mut(..paths) {
            paths.rotate_left(1);
        }
    }
    feed
}
