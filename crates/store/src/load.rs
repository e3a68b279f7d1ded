//! How much this process uses its database, and how often an operation failed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Open connections.
    pub connections: usize,
    /// Of these, the ones that run an operation.
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
    /// With a fixed number of connections.
    pub(crate) fn with(connections: usize) -> Self {
        Self {
            connections: AtomicUsize::new(connections),
            ..Self::default()
        }
    }

    /// Counts connections until the guard is dropped.
    pub(crate) fn connections(&self, count: usize) -> CountGuard<'_> {
        CountGuard::new(&self.connections, count)
    }

    /// Counts an operation until the guard is dropped.
    pub(crate) fn at_work(&self) -> CountGuard<'_> {
        CountGuard::new(&self.at_work, 1)
    }

    /// Counts an error.
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
    fn a_guard_counts_until_it_is_dropped() {
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
