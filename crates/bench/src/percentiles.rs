//! Percentiles of a run's times, by nearest rank: every number shown is a time that was seen.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Percentiles {
    pub(crate) p50: Duration,
    pub(crate) p90: Duration,
    pub(crate) p99: Duration,
    pub(crate) max: Duration,
}

impl Percentiles {
    /// `None` when there is nothing to rank.
    pub(crate) fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let rank = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100);
            times.get(rank.saturating_sub(1)).copied()
        };
        Some(Self {
            p50: rank(50)?,
            p90: rank(90)?,
            p99: rank(99)?,
            max: rank(100)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(values: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        values.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn a_hundred_times_are_their_own_percentiles() {
        let found = Percentiles::of(millis((1..=100).rev())).unwrap();
        let expected = millis([50, 90, 99, 100]);
        assert_eq!([found.p50, found.p90, found.p99, found.max], expected[..]);
    }

    #[test]
    fn the_slowest_of_few_is_the_high_percentile() {
        let found = Percentiles::of(millis([3, 1, 2])).unwrap();
        assert_eq!(
            [found.p50, found.p90, found.p99, found.max],
            millis([2, 3, 3, 3])[..]
        );
    }

    #[test]
    fn a_single_time_is_every_percentile_and_no_times_have_none() {
        let found = Percentiles::of(millis([7])).unwrap();
        assert_eq!([found.p50, found.max], millis([7, 7])[..]);
        assert_eq!(Percentiles::of(Vec::new()), None);
    }
}
