//! When the key set may be fetched: strangers choose what a token names, and must not choose how
//! often the issuer is asked.

use std::time::{Duration, Instant};

/// Between two tries while there is no set at all.
const WHILE_MISSING: Duration = Duration::from_secs(1);
/// Between two tries while an old set serves.
const WHILE_OLD: Duration = Duration::from_secs(10);
/// Between two looks for keys that the set does not have.
const FOR_UNKNOWN: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Missing,
    Old,
    UnknownKey,
}

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The last try that brought no set, or whose end is not known: a caller that hung up takes
    /// its try with it.
    in_vain: Option<Instant>,
    /// By itself, so that the first unknown key after a fetch is looked for at once.
    for_unknown: Option<Instant>,
}

impl Pace {
    pub(super) fn allows(&self, why: Why, now: Instant) -> bool {
        let (last, pause) = match why {
            Why::Missing => (self.in_vain, WHILE_MISSING),
            Why::Old => (self.in_vain, WHILE_OLD),
            Why::UnknownKey => (self.for_unknown, FOR_UNKNOWN),
        };
        last.is_none_or(|last| now.duration_since(last) >= pause)
    }

    /// Counts as a try in vain until it is [`Self::done`].
    pub(super) fn begin(&mut self, why: Why, now: Instant) {
        self.in_vain = Some(now);
        if why == Why::UnknownKey {
            self.for_unknown = Some(now);
        }
    }

    pub(super) fn done(&mut self) {
        self.in_vain = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unknown_key_is_looked_for_at_once_and_the_next_ones_seldom() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pace = Pace::default();
        for why in [Why::Missing, Why::UnknownKey] {
            assert!(pace.allows(why, at(0)), "{why:?}");
            pace.begin(why, at(0));
            pace.done();
        }
        for second in 0..10 {
            assert!(!pace.allows(Why::UnknownKey, at(second)), "{second}");
        }
        assert!(pace.allows(Why::UnknownKey, at(10)));
        // Another reason is not held up by it.
        assert!(pace.allows(Why::Old, at(0)));
    }

    #[test]
    fn failures_are_repeated_soon_without_a_set_and_later_with_an_old_one() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut pace = Pace::default();
        pace.begin(Why::Missing, at(0));
        assert!(!pace.allows(Why::Missing, at(999)));
        assert!(pace.allows(Why::Missing, at(1_000)));
        assert!(!pace.allows(Why::Old, at(9_999)));
        assert!(pace.allows(Why::Old, at(10_000)));
        pace.done();
        assert!(pace.allows(Why::Old, at(1)));
    }
}
