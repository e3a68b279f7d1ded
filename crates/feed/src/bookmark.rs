//! Where in a feed a reader is.

use std::{cmp::Ordering, fmt, str::FromStr};

use crate::store::{RowCursor, ScanDirection, Seq};

/// This server gives no longer ones.
pub const MAX_LENGTH: usize = 4_096;

const FORM: &str = "w1";
const FROM_GIVEN: &str = "g";
const FROM_NEW: &str = "n";
/// Up to this length, a bookmark without a direction was read from the new facts.
const SHORT_SPAN: Seq = 1_000;

/// A feed is read in spans of seqs, one after the other: see [`crate::paging`]. Its text is
/// `w1-<to>` after a whole span, `w1-<from>-<to>-<output>-<direction>-<cursor>` within one, and
/// empty at the feed's beginning. The direction is `g` (from the given) or `n` (from the new
/// facts). Bookmarks of upstream's form (`254.253`) say nothing about this store and mean the
/// beginning: clients skip the facts that they have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bookmark {
    #[default]
    Start,
    /// Everything up to here has been read.
    Finished(Seq),
    /// In the span `(from, to]`, after a row of the delta of `first_new_output`.
    Within {
        from: Seq,
        to: Seq,
        first_new_output: usize,
        cursor: RowCursor,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the bookmark is not one that this server has given")]
    Unreadable,
    #[error("the bookmark is longer than {MAX_LENGTH} characters")]
    TooLong,
    #[error("the bookmark is not one of this feed")]
    OfAnotherFeed,
}

impl Bookmark {
    /// At least everything up to here has been read.
    #[must_use]
    pub fn base(&self) -> Seq {
        match self {
            Self::Start => 0,
            Self::Finished(to) => *to,
            Self::Within { from, .. } => *from,
        }
    }

    /// Whether it has a seq that this store has not drawn yet: then it is another store's.
    #[must_use]
    pub fn is_beyond(&self, last: Seq) -> bool {
        match self {
            Self::Start => false,
            Self::Finished(to) | Self::Within { to, .. } => *to > last,
        }
    }

    /// In the order in which a reader gets them. It goes back only if a given is stored after the
    /// feed was read: then the feed starts from its beginning.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let inside = |bookmark: &Self| match bookmark {
            Self::Start | Self::Finished(_) => None,
            Self::Within {
                to,
                first_new_output,
                cursor,
                ..
            } => Some((*first_new_output, cursor.clone(), *to)),
        };
        let bases = self.base().cmp(&other.base());
        bases.then_with(|| inside(self).cmp(&inside(other)))
    }
}

impl fmt::Display for Bookmark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => Ok(()),
            Self::Finished(to) => write!(out, "{FORM}-{to}"),
            Self::Within {
                from,
                to,
                first_new_output,
                cursor,
            } => {
                let direction = match cursor.direction {
                    ScanDirection::FromGiven => FROM_GIVEN,
                    ScanDirection::FromNew => FROM_NEW,
                };
                let at: Vec<String> = cursor.at.iter().map(Seq::to_string).collect();
                write!(
                    out,
                    "{FORM}-{from}-{to}-{first_new_output}-{direction}-{}",
                    at.join(".")
                )
            }
        }
    }
}

impl FromStr for Bookmark {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_LENGTH {
            return Err(Error::TooLong);
        }
        if text.is_empty() || is_upstreams(text) {
            return Ok(Self::Start);
        }
        let parts: Vec<&str> = text.split('-').collect();
        match &*parts {
            [FORM, to] => Ok(Self::Finished(seq(to)?)),
            [FORM, from, to, first_new_output, at] => within(from, to, first_new_output, None, at),
            [FORM, from, to, first_new_output, FROM_GIVEN, at] => within(
                from,
                to,
                first_new_output,
                Some(ScanDirection::FromGiven),
                at,
            ),
            [FORM, from, to, first_new_output, FROM_NEW, at] => {
                within(from, to, first_new_output, Some(ScanDirection::FromNew), at)
            }
            _ => Err(Error::Unreadable),
        }
    }
}

fn within(
    from: &str,
    to: &str,
    first_new_output: &str,
    direction: Option<ScanDirection>,
    at: &str,
) -> Result<Bookmark, Error> {
    let (from, to) = (seq(from)?, seq(to)?);
    let first_new_output =
        usize::try_from(seq(first_new_output)?).map_err(|_| Error::Unreadable)?;
    if from >= to || first_new_output >= crate::query::MAX_VARIABLES {
        return Err(Error::Unreadable);
    }
    // A bookmark without a direction is of a time when the length of the span alone decided it.
    let direction = direction.unwrap_or(if from > 0 && to - from <= SHORT_SPAN {
        ScanDirection::FromNew
    } else {
        ScanDirection::FromGiven
    });
    let at = match at {
        "" => Vec::new(),
        at => at.split('.').map(seq).collect::<Result<_, _>>()?,
    };
    Ok(Bookmark::Within {
        from,
        to,
        first_new_output,
        cursor: RowCursor { direction, at },
    })
}

/// Digits in groups.
fn is_upstreams(text: &str) -> bool {
    text.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn seq(text: &str) -> Result<Seq, Error> {
    // Parsing would take a sign too.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::Unreadable);
    }
    text.parse().map_err(|_| Error::Unreadable)
}
