//! When the key set may be fetched. Any caller can send a token with an unknown key; that must not
//! decide how often the issuer is asked.

use std::time::{Duration, Instant};

/// Between two attempts while there is no set.
const WHILE_MISSING: Duration = Duration::from_secs(1);
/// Between two attempts while an old set serves.
const WHILE_OLD: Duration = Duration::from_secs(10);
/// Between two fetches for keys that the set does not have.
const FOR_UNKNOWN_KEY: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchReason {
    Missing,
    Old,
    UnknownKey,
}

#[derive(Debug, Default)]
pub(super) struct FetchPace {
    /// The last attempt that failed or whose end is unknown: it ends with a caller that hangs up.
    failed_at: Option<Instant>,
    /// Apart, so that the first unknown key after a fetch causes another at once.
    for_unknown_at: Option<Instant>,
}

impl FetchPace {
    pub(super) fn allows(&self, reason: FetchReason, now: Instant) -> bool {
        let (last, pause) = match reason {
            FetchReason::Missing => (self.failed_at, WHILE_MISSING),
            FetchReason::Old => (self.failed_at, WHILE_OLD),
            FetchReason::UnknownKey => (self.for_unknown_at, FOR_UNKNOWN_KEY),
        };
        last.is_none_or(|last| now.duration_since(last) >= pause)
    }

    /// Counts as failed until it has [`Self::succeeded`].
    pub(super) fn begin(&mut self, reason: FetchReason, now: Instant) {
        self.failed_at = Some(now);
        if reason == FetchReason::UnknownKey {
            self.for_unknown_at = Some(now);
        }
    }

    pub(super) fn succeeded(&mut self) {
        self.failed_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unknown_key_causes_a_fetch_at_once_and_the_next_ones_seldom() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pace = FetchPace::default();
        for reason in [FetchReason::Missing, FetchReason::UnknownKey] {
            assert!(pace.allows(reason, at(0)), "{reason:?}");
            pace.begin(reason, at(0));
            pace.succeeded();
        }
        for second in 0..10 {
            assert!(
                !pace.allows(FetchReason::UnknownKey, at(second)),
                "{second}"
            );
        }
        assert!(pace.allows(FetchReason::UnknownKey, at(10)));
        // It does not delay a fetch for another reason.
        assert!(pace.allows(FetchReason::Old, at(0)));
    }

    #[test]
    fn failures_are_repeated_soon_without_a_set_and_later_with_an_old_one() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut pace = FetchPace::default();
        pace.begin(FetchReason::Missing, at(0));
        assert!(!pace.allows(FetchReason::Missing, at(999)));
        assert!(pace.allows(FetchReason::Missing, at(1_000)));
        assert!(!pace.allows(FetchReason::Old, at(9_999)));
        assert!(pace.allows(FetchReason::Old, at(10_000)));
        pace.succeeded();
        assert!(pace.allows(FetchReason::Old, at(1)));
    }
}
