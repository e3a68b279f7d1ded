//! Where in a feed a reader is.

use std::{cmp::Ordering, fmt, str::FromStr};

use crate::store::{Cursor, Position, Way};

/// Longer ones are nobody's.
pub const MAX_LENGTH: usize = 4_096;

const FORM: &str = "w1";
const FROM_GIVEN: &str = "g";
const FROM_NEW: &str = "n";
/// Spans that bookmarks without a way were read from the new facts in.
const SHORT_SPAN: Position = 1_000;

/// A feed is read in spans of positions, one after the other: see [`crate::paging`]. Written as
/// `w1-<to>` after a whole span, and as `w1-<from>-<to>-<newest>-<way>-<cursor>` in the middle of one,
/// the way being `g` (from the given) or `n` (from the new facts); a feed's beginning is empty. Bookmarks of upstream's form (`254.253`) say nothing about this store,
/// and mean the beginning: clients skip what they have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bookmark {
    #[default]
    Start,
    /// Everything up to here has been read.
    Finished(Position),
    /// In the span `(from, to]`, after a row of the slice `newest`.
    Within {
        from: Position,
        to: Position,
        newest: usize,
        after: Cursor,
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
    /// Everything up to here has been read, whatever else has.
    #[must_use]
    pub fn base(&self) -> Position {
        match self {
            Self::Start => 0,
            Self::Finished(to) => *to,
            Self::Within { from, .. } => *from,
        }
    }

    /// Whether it speaks of positions that no fact of this store has yet: it is another store's.
    #[must_use]
    pub fn is_beyond(&self, last: Position) -> bool {
        match self {
            Self::Start => false,
            Self::Finished(to) | Self::Within { to, .. } => *to > last,
        }
    }

    /// In the order in which a reader gets them. It never goes back, but where a given is stored
    /// after the feed was read: then the feed begins anew.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let inside = |bookmark: &Self| match bookmark {
            Self::Start | Self::Finished(_) => None,
            Self::Within {
                to, newest, after, ..
            } => Some((*newest, after.clone(), *to)),
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
                newest,
                after,
            } => {
                let way = match after.way {
                    Way::FromGiven => FROM_GIVEN,
                    Way::FromNew => FROM_NEW,
                };
                let at: Vec<String> = after.at.iter().map(Position::to_string).collect();
                write!(out, "{FORM}-{from}-{to}-{newest}-{way}-{}", at.join("."))
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
            [FORM, to] => Ok(Self::Finished(position(to)?)),
            [FORM, from, to, newest, at] => within(from, to, newest, None, at),
            [FORM, from, to, newest, FROM_GIVEN, at] => {
                within(from, to, newest, Some(Way::FromGiven), at)
            }
            [FORM, from, to, newest, FROM_NEW, at] => {
                within(from, to, newest, Some(Way::FromNew), at)
            }
            _ => Err(Error::Unreadable),
        }
    }
}

fn within(
    from: &str,
    to: &str,
    newest: &str,
    way: Option<Way>,
    at: &str,
) -> Result<Bookmark, Error> {
    let (from, to) = (position(from)?, position(to)?);
    let newest = usize::try_from(position(newest)?).map_err(|_| Error::Unreadable)?;
    if from >= to || newest >= crate::query::MAX_VARIABLES {
        return Err(Error::Unreadable);
    }
    // Bookmarks that do not name a way were given when the length of the span alone decided.
    let way = way.unwrap_or(if from > 0 && to - from <= SHORT_SPAN {
        Way::FromNew
    } else {
        Way::FromGiven
    });
    let at = match at {
        "" => Vec::new(),
        at => at.split('.').map(position).collect::<Result<_, _>>()?,
    };
    Ok(Bookmark::Within {
        from,
        to,
        newest,
        after: Cursor { way, at },
    })
}

/// Digits in groups.
fn is_upstreams(text: &str) -> bool {
    text.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

fn position(text: &str) -> Result<Position, Error> {
    // Parsing would take a sign too.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::Unreadable);
    }
    text.parse().map_err(|_| Error::Unreadable)
}
