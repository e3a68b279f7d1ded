//! What is known to be not there: a dispatcher that comes back after its poll timeout need not ask
//! again as long as nothing has been said since.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Kinds of dispatchers that are remembered; there are seldom more than a handful.
const MOST: usize = 1_024;

/// What had been said when somebody asked: wakes of the door, and questions out of turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) published: u64,
    pub(crate) asked: u64,
}

/// When something will be there, if nothing is said before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Next {
    pub(crate) at: Option<Instant>,
}

impl Next {
    /// How long until then.
    pub(crate) fn after(self) -> Option<Duration> {
        self.at
            .map(|at| at.saturating_duration_since(Instant::now()))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Quiet {
    known: Mutex<HashMap<String, (Said, Next)>>,
}

impl Quiet {
    /// Nothing is there for `who`, and will not be before what is given back.
    pub(crate) fn still(&self, who: &str, said: Said) -> Option<Next> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, next) = known.get(who)?;
        let is_due = next.at.is_some_and(|at| at <= Instant::now());
        (*then == said && !is_due).then_some(*next)
    }

    /// `who` asked when `said` had been said, and there was nothing.
    pub(crate) fn remember(&self, who: &str, said: Said, next: Next) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains_key(who) {
            known.clear();
        }
        known.insert(who.to_owned(), (said, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: Said = Said {
        published: 3,
        asked: 1,
    };

    #[test]
    fn what_was_said_since_ends_the_quiet() {
        let quiet = Quiet::default();
        assert!(quiet.still("a", SAID).is_none());
        quiet.remember("a", SAID, Next::default());
        assert!(quiet.still("a", SAID).is_some());
        assert!(quiet.still("b", SAID).is_none());
        let later = Said {
            published: 4,
            ..SAID
        };
        assert!(quiet.still("a", later).is_none());
        let asked = Said { asked: 2, ..SAID };
        assert!(quiet.still("a", asked).is_none());
    }

    #[test]
    fn what_is_due_ends_the_quiet() {
        let quiet = Quiet::default();
        let at = Some(Instant::now());
        quiet.remember("a", SAID, Next { at });
        assert!(quiet.still("a", SAID).is_none());
    }
}
