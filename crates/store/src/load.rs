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
    pub(crate) fn connections(&self, count: usize) -> Counted<'_> {
        Counted::new(&self.connections, count)
    }

    /// Counts an operation for as long as what it gives is kept.
    pub(crate) fn at_work(&self) -> Counted<'_> {
        Counted::new(&self.at_work, 1)
    }

    /// Counts what has failed.
    pub(crate) fn judged<T, E>(&self, result: Result<T, E>) -> Result<T, E> {
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
pub(crate) struct Counted<'a> {
    counter: &'a AtomicUsize,
    count: usize,
}

impl<'a> Counted<'a> {
    fn new(counter: &'a AtomicUsize, count: usize) -> Self {
        counter.fetch_add(count, Ordering::Relaxed);
        Self { counter, count }
    }
}

impl Drop for Counted<'_> {
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
        let _ = meter.judged::<(), &str>(Err("no"));
        let _ = meter.judged::<_, &str>(Ok(()));
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
