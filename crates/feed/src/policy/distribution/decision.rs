//! What is said to whoever asks for feeds.

use wakeline_store::Error;

use super::{
    Answer, Asker, Distribution, Givens,
    intersection::{DISTRIBUTION_USER, intersect},
    rule::With,
    shape,
};
use crate::{
    fact::Reference,
    feeds::{self, Feed, TooMany},
    skeleton::Skeleton,
    specification::Specification,
    store::Store,
};

/// Why a feed is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// A rule shares it, but nobody is logged in.
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

/// The answer to who asks for the feeds of a specification: one for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// `None` where it is authorized.
    pub code: Option<Code>,
    pub reason: String,
    pub feeds: Vec<Granted>,
}

/// A feed that the client is told of. Whether it is served is asked by [`Distribution::answer`] with
/// this specification and these facts, whatever the verdict was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
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
    TooMany(#[from] TooMany),
    #[error(transparent)]
    Store(#[from] Error),
}

impl Decision {
    /// Without any rules everything is served.
    pub fn unlimited(specification: &Specification, given: &[Reference]) -> Result<Self, TooMany> {
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

fn granted(feeds: Vec<Feed>, owner: Option<&Reference>) -> Vec<Granted> {
    let feeds = feeds.into_iter().map(|feed| Granted {
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
        let answers = self.answers(store, &feeds, user).await?;
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
        let answers = self.answers(store, feeds, user).await?;
        Ok(refused(feeds, &answers))
    }

    /// For each of these feeds whether it is served to a user now.
    async fn answers(
        &self,
        store: &dyn Store,
        feeds: &[Feed],
        user: Option<&Reference>,
    ) -> Result<Vec<Answer>, Error> {
        let mut wanted: Vec<Reference> = feeds.iter().flat_map(|feed| feed.given.clone()).collect();
        wanted.extend(user.cloned());
        wanted.sort();
        wanted.dedup();
        let at = store.find(wanted.clone()).await?;
        let find = |one: &Reference| {
            let place = wanted.binary_search(one).ok()?;
            at.get(place).copied().flatten()
        };
        let asker = user.map(|user| Asker {
            user,
            at: find(user),
        });
        let mut answers = Vec::with_capacity(feeds.len());
        for feed in feeds {
            let givens = Givens {
                references: &feed.given,
                found: feed.given.iter().map(find).collect(),
            };
            let answer = self.answer_to(store, &feed.specification, &givens, asker);
            answers.push(answer.await?);
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
    ) -> Result<Vec<Granted>, TooMany> {
        let targets: Vec<Skeleton> = feeds
            .iter()
            .filter(|feed| !feed.is_added)
            .map(|feed| Skeleton::of(&feed.specification))
            .collect();
        let mut given = given.to_vec();
        given.push(user.clone());
        let mut found = Vec::new();
        for rule in &self.rules {
            let With::Users {
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

/// The refusal of a specification. Rules are written for upstream's feeds: one that was added is left
/// out where no rule shares it, and nothing else is refused for it.
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

/// The feeds as the narrowed specification names them. Those of its feeds that only tell whether the
/// user is admitted are left out: they have none of the facts that were asked for.
fn rows_of(
    feeds: &[Feed],
    narrowed: &Specification,
    given: &[Reference],
    user: &Reference,
) -> Result<Vec<Granted>, TooMany> {
    let named = feeds::of(narrowed, given)?;
    let named = named.into_iter().filter_map(|named| {
        let matches = &named.specification.matches;
        // Narrowed matches come first; what follows them is the feed's own.
        let own = feeds.iter().filter(|feed| {
            let own = &feed.specification.matches;
            feed.is_added == named.is_added && matches.len() > own.len() && matches.ends_with(own)
        });
        let own = own.max_by_key(|feed| feed.specification.matches.len());
        own.map(|feed| Granted {
            hash: feeds::hash(&pinned_last(&named.specification), &named.given),
            specification: feed.specification.clone(),
            given: feed.given.clone(),
            owner: Some(user.clone()),
        })
    });
    Ok(named.collect())
}

/// As upstream orders it: where a fact is said to be the user comes after what else is said of it,
/// while our feeds begin with it. The hash tells one from the other.
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
