//! How much of a database this process uses, and how often it was failed by it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Connections that are kept.
    pub connections: usize,
    /// Of these, the ones at work.
    pub busy: usize,
    /// Operations that ended in an error, since the start.
    pub failures: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Meter {
    connections: AtomicUsize,
    /// Operations under way; PostgreSQL's connections take several at once.
    at_work: AtomicUsize,
    failures: AtomicU64,
}

impl Meter {
    /// With connections that are kept for as long as it is.
    pub(crate) fn with(connections: usize) -> Self {
        Self {
            connections: AtomicUsize::new(connections),
            ..Self::default()
        }
    }

    /// Counts connections for as long as what it gives is kept.
    pub(crate) fn connections(&self, count: usize) -> CountGuard<'_> {
        CountGuard::new(&self.connections, count)
    }

    /// Counts an operation for as long as what it gives is kept.
    pub(crate) fn at_work(&self) -> CountGuard<'_> {
        CountGuard::new(&self.at_work, 1)
    }

    /// Counts what has failed.
    pub(crate) fn count_failure<T, E>(&self, result: Result<T, E>) -> Result<T, E> {
        if result.is_err() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    pub(crate) fn load(&self) -> Load {
        let connections = self.connections.load(Ordering::Relaxed);
        Load {
            connections,
            busy: self.at_work.load(Ordering::Relaxed).min(connections),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }
}

#[derive(Debug)]
pub(crate) struct CountGuard<'a> {
    counter: &'a AtomicUsize,
    count: usize,
}

impl<'a> CountGuard<'a> {
    fn new(counter: &'a AtomicUsize, count: usize) -> Self {
        counter.fetch_add(count, Ordering::Relaxed);
        Self { counter, count }
    }
}

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_counted_until_it_is_dropped() {
        let meter = Meter::default();
        let two = meter.connections(2);
        let at_work: Vec<_> = (0..3).map(|_| meter.at_work()).collect();
        let _ = meter.count_failure::<(), &str>(Err("no"));
        let _ = meter.count_failure::<_, &str>(Ok(()));
        let load = |connections, busy| Load {
            connections,
            busy,
            failures: 1,
        };
        assert_eq!(meter.load(), load(2, 2));
        drop(at_work);
        assert_eq!(meter.load(), load(2, 0));
        drop(two);
        assert_eq!(meter.load(), load(0, 0));
    }
}
