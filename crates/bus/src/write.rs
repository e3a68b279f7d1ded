//! A write of a store. Only [`Write::commit`] can run it, and that wakes the waiters.

use std::{
    fmt,
    sync::{Arc, Once},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::oneshot;
use wakeline_store::Error;
use wakeline_wake::Wake;

use crate::Bus;

/// Which waiters a committed write wakes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    wakes: Vec<Wake>,
    /// Each with its delay.
    later: Vec<(Wake, Duration)>,
    whole_door: bool,
    batches: Vec<Arc<BatchWakes>>,
}

/// What the writes of a batch publish once for all of them.
#[derive(Debug)]
struct BatchWakes {
    wakes: Wakes,
    published: Once,
}

impl PartialEq for BatchWakes {
    fn eq(&self, other: &Self) -> bool {
        self.wakes == other.wakes
    }
}

impl Eq for BatchWakes {}

impl Wakes {
    /// No request can wait for what was written.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// There may be something for any waiter of the door: it rechecks all of them.
    #[must_use]
    pub fn whole_door() -> Self {
        Self {
            whole_door: true,
            ..Self::default()
        }
    }

    /// What was written falls due after `delay`.
    #[must_use]
    pub fn later(wake: Wake, delay: Duration) -> Self {
        if delay.is_zero() {
            return wake.into();
        }
        Self {
            later: vec![(wake, delay)],
            ..Self::default()
        }
    }

    /// These, for several writes that were committed together: each of them has a clone. The first
    /// write to get here publishes them, and the others wait until it has. So each caller returns
    /// after the waiters of all were woken.
    #[must_use]
    pub fn published_once(self) -> Self {
        let batch = BatchWakes {
            wakes: self,
            published: Once::new(),
        };
        Self {
            batches: vec![Arc::new(batch)],
            ..Self::default()
        }
    }

    /// These and the others.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.wakes.extend(others.wakes);
        self.later.extend(others.later);
        self.whole_door |= others.whole_door;
        self.batches.extend(others.batches);
        self
    }

    /// Wakes the waiters, here and in the other processes.
    fn publish(&self, bus: &Bus, door: &str) {
        bus.wake(&self.wakes);
        for (wake, delay) in &self.later {
            bus.wake_after(wake.clone(), *delay);
        }
        if self.whole_door {
            bus.recheck_door(door);
        }
        for batch in &self.batches {
            batch.published.call_once(|| batch.wakes.publish(bus, door));
        }
    }
}

impl From<Vec<Wake>> for Wakes {
    fn from(wakes: Vec<Wake>) -> Self {
        Self {
            wakes,
            ..Self::default()
        }
    }
}

impl From<Wake> for Wakes {
    fn from(wake: Wake) -> Self {
        vec![wake].into()
    }
}

/// A write that has not begun. It is not a future, so that it cannot be awaited and its waiters
/// forgotten: [`commit`](Self::commit) is the only way to run it.
#[must_use = "nothing is written until `commit` runs it"]
pub struct Write<T> {
    door: &'static str,
    run: BoxFuture<'static, Result<CommittedWrite<T>, Error>>,
}

/// What is left to do once the write is on disk.
struct CommittedWrite<T> {
    wakes: Wakes,
    follow_ups: BoxFuture<'static, T>,
}

impl<T> fmt::Debug for Write<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Write")
            .field("door", &self.door)
            .finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Write<T> {
    /// `run` returns when the write is on disk; `wakes` names the waiters that its result concerns.
    pub fn new(
        door: &'static str,
        run: impl Future<Output = Result<T, Error>> + Send + 'static,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
    ) -> Self {
        let run = async move {
            let value = run.await?;
            Ok(CommittedWrite {
                wakes: wakes(&value),
                follow_ups: std::future::ready(value).boxed(),
            })
        };
        Self {
            door,
            run: run.boxed(),
        }
    }

    /// A follow-up of the commit (a counter, a cached name to forget): it runs after the waiters
    /// were woken, whether the caller is still there or not.
    pub fn map<U: Send + 'static>(
        self,
        follow_up: impl FnOnce(T) -> U + Send + 'static,
    ) -> Write<U> {
        self.then(|value| std::future::ready(follow_up(value)))
    }

    /// The same for a follow-up that waits for something itself.
    pub fn then<U, F>(self, follow_up: impl FnOnce(T) -> F + Send + 'static) -> Write<U>
    where
        U: Send + 'static,
        F: Future<Output = U> + Send + 'static,
    {
        let run = self.run.map(|committed| {
            committed.map(|CommittedWrite { wakes, follow_ups }| CommittedWrite {
                wakes,
                follow_ups: follow_ups.then(follow_up).boxed(),
            })
        });
        Write {
            door: self.door,
            run: run.boxed(),
        }
    }

    /// Commits, wakes the waiters, runs the follow-ups, and returns the value.
    ///
    /// All of it happens in a task that outlives the caller, begun by this call: a caller that
    /// drops the future has still written, and the value is dropped by the task. The end of the
    /// process waits for these tasks ([`Bus::finish_writes`]). After a panic, or a commit with an
    /// unknown outcome, the door rechecks all its waiters, because there may be something for them.
    pub fn commit(self, bus: &Arc<Bus>) -> impl Future<Output = Result<T, Error>> + Send + use<T> {
        let recheck = RecheckOnDrop {
            bus: bus.clone(),
            door: self.door,
            is_armed: true,
        };
        let (answer, answered) = oneshot::channel();
        let writing = async move {
            let mut recheck = recheck;
            let result = match self.run.await {
                Ok(committed) => {
                    // After the commit: a woken waiter must find what it was woken for.
                    committed.wakes.publish(&recheck.bus, recheck.door);
                    let value = committed.follow_ups.await;
                    recheck.is_armed = false;
                    Ok(value)
                }
                Err(error) => {
                    recheck.is_armed = matches!(error, Error::OutcomeUnknown(_));
                    Err(error)
                }
            };
            // If the caller has gone, the value is dropped here.
            let _ = answer.send(result);
        };
        // Boxed: a task per kind of value would be a copy of the runtime's code per kind.
        bus.spawn_write(writing.boxed());
        answered.map(|answered| {
            let lost = |_| Err(Error::OutcomeUnknown("the write was abandoned".into()));
            answered.unwrap_or_else(lost)
        })
    }
}

impl Bus {
    fn spawn_write(&self, writing: BoxFuture<'static, ()>) {
        self.writes.spawn(writing);
    }
}

/// Makes a door recheck its waiters unless the write came to a known end.
struct RecheckOnDrop {
    bus: Arc<Bus>,
    door: &'static str,
    is_armed: bool,
}

impl Drop for RecheckOnDrop {
    fn drop(&mut self) {
        if self.is_armed {
            self.bus.recheck_door(self.door);
        }
    }
}
