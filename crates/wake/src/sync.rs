//! The engine's lock. shuttle's takes its place when schedules are explored.

#[cfg(feature = "shuttle")]
use shuttle::sync as imp;
#[cfg(not(feature = "shuttle"))]
use std::sync as imp;
use std::sync::PoisonError;

pub(crate) use imp::MutexGuard;

#[derive(Debug)]
pub(crate) struct Mutex<T>(imp::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(imp::Mutex::new(value))
    }

    /// A panic while the lock was held is a defect of the state machine; the other waiters are
    /// better served by going on than by a second panic in each of them.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
