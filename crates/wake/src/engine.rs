//! The asynchronous skin over [`State`]: one lock, one task for all that is due.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::{
    state::{HoldRefusal, Limits, ParkEnd, State, WakeResult},
    sync::Mutex,
    timers::TimerId,
    topic::{Cause, EngineTime, WaitKey, Wake},
    view::{DoorCounters, WaitedKey, WaiterPage},
    waiters::WaiterId,
};

/// The engine of one process. Cheap to share; nothing it does waits for anything but its lock,
/// which is never held across an await or a call-out.
#[derive(Debug)]
pub struct Engine {
    inner: Mutex<Inner>,
    began: Instant,
    /// Tells the clock task that something is due earlier than what it sleeps for.
    earlier: Notify,
}

#[derive(Debug)]
struct Inner {
    state: State,
    wakers: Vec<Option<Waker>>,
    /// What the clock task sleeps for.
    sleeps_until: Option<EngineTime>,
}

/// How a park ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkOutcome {
    /// Look again: something may be there. Say what came of it with [`Waiter::complete`].
    Woken {
        cause: Cause,
        at: EngineTime,
        /// Which of the waiter's places the wake was for, counted from zero.
        key: usize,
    },
    Deadline,
    Drain,
}

impl Engine {
    #[must_use]
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(Inner {
                state: State::new(limits),
                wakers: Vec::new(),
                sleeps_until: None,
            }),
            began: Instant::now(),
            earlier: Notify::new(),
        })
    }

    #[must_use]
    pub fn now(&self) -> EngineTime {
        EngineTime::default().after(self.began.elapsed())
    }

    /// A waiter at `keys` (at least one) for at most `hold`. Register first, check the store
    /// next: see the crate's documentation.
    pub fn register(
        self: &Arc<Self>,
        keys: &[WaitKey],
        hold: Duration,
    ) -> Result<Waiter, HoldRefusal> {
        assert!(!keys.is_empty(), "a waiter waits for something");
        let now = self.now();
        let id = self.act(|state, _| state.register(keys, now.after(hold), now))?;
        Ok(Waiter {
            engine: self.clone(),
            id,
        })
    }

    /// Something may be there for those who wait at the wake's topics.
    pub fn wake(&self, wake: &Wake, cause: Cause) {
        let now = self.now();
        self.act(|state, woken| state.publish(wake, cause, now, woken));
    }

    /// Publishes `wake` after `delay`. `None` when there are too many timers; then the fallback
    /// finds what is due.
    pub fn wake_after(&self, wake: Wake, delay: Duration) -> Option<TimerId> {
        let due = self.now().after(delay);
        self.act(|state, _| state.wake_at(wake, due))
    }

    /// Those who wait at `key` look again after `delay`, if nothing wakes them before. Without
    /// waiters there it does nothing.
    pub fn recheck_after(&self, key: &WaitKey, delay: Duration) {
        let due = self.now().after(delay);
        self.act(|state, _| state.recheck_at(key, due));
    }

    pub fn cancel(&self, timer: TimerId) -> bool {
        self.inner.lock().state.cancel(timer)
    }

    /// Every park returns [`ParkOutcome::Drain`] from here on, and new holds are refused.
    pub fn drain(&self) {
        self.act(State::drain);
    }

    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.inner.lock().state.is_draining()
    }

    /// Lets timers and deadlines that have come take effect. [`Engine::run`] calls it in time.
    pub fn advance(&self) {
        let now = self.now();
        self.act(|state, woken| state.advance(now, woken));
    }

    /// The clock task: sleeps until the earliest deadline or timer, for ever.
    pub async fn run(self: Arc<Self>) {
        loop {
            let due = {
                let mut inner = self.inner.lock();
                inner.sleeps_until = inner.state.next_due();
                inner.sleeps_until
            };
            match due {
                Some(due) => {
                    let at = self.began + Duration::from_micros(due.0);
                    tokio::select! {
                        () = tokio::time::sleep_until(at) => self.advance(),
                        () = self.earlier.notified() => {}
                    }
                }
                None => self.earlier.notified().await,
            }
        }
    }

    /// Every place of `door` where someone waits.
    #[must_use]
    pub fn waiting(&self, door: &str) -> Vec<WaitedKey> {
        self.inner.lock().state.waiting(door)
    }

    #[must_use]
    pub fn page(&self, offset: usize, limit: usize) -> WaiterPage {
        let now = self.now();
        self.inner.lock().state.page(offset, limit, now)
    }

    /// How many wakes have been published for `door`: see [`State::published`].
    #[must_use]
    pub fn published(&self, door: &str) -> u64 {
        self.inner.lock().state.published(door)
    }

    #[must_use]
    pub fn held(&self) -> usize {
        self.inner.lock().state.held()
    }

    #[must_use]
    pub fn topic_count(&self) -> usize {
        self.inner.lock().state.topic_count()
    }

    #[must_use]
    pub fn timer_count(&self) -> usize {
        self.inner.lock().state.timer_count()
    }

    #[must_use]
    pub fn doors(&self) -> Vec<(String, DoorCounters)> {
        self.inner.lock().state.doors().to_vec()
    }

    /// One step of the state machine. Tasks are woken after the lock is released, so that they
    /// do not run into it.
    fn act<T>(&self, step: impl FnOnce(&mut State, &mut Vec<WaiterId>) -> T) -> T {
        let mut woken = Vec::new();
        let (result, wakers, is_earlier) = {
            let mut inner = self.inner.lock();
            let result = step(&mut inner.state, &mut woken);
            let wakers: Vec<Waker> = woken
                .iter()
                .filter_map(|id| inner.wakers.get_mut(id.index()).and_then(Option::take))
                .collect();
            let due = inner.state.next_due();
            let is_earlier = match (due, inner.sleeps_until) {
                (Some(due), Some(sleeps_until)) => due < sleeps_until,
                (Some(_), None) => true,
                (None, _) => false,
            };
            if is_earlier {
                inner.sleeps_until = due;
            }
            (result, wakers, is_earlier)
        };
        for waker in wakers {
            waker.wake();
        }
        if is_earlier {
            self.earlier.notify_one();
        }
        result
    }
}

/// One parked request or stream. Dropping it leaves at once, and a wake that it was given and
/// has not settled goes to the next that can use it.
#[derive(Debug)]
pub struct Waiter {
    engine: Arc<Engine>,
    id: WaiterId,
}

impl Waiter {
    /// Waits for a wake, the deadline or the drain. Dropping the future loses nothing: what was
    /// given is found by the next park, or passed on when the waiter is dropped.
    pub async fn park(&mut self) -> ParkOutcome {
        poll_fn(|context| {
            let mut inner = self.engine.inner.lock();
            match inner.state.take(self.id) {
                Some(ParkEnd::Wake(cause, at, key)) => {
                    Poll::Ready(ParkOutcome::Woken { cause, at, key })
                }
                Some(ParkEnd::Deadline) => Poll::Ready(ParkOutcome::Deadline),
                Some(ParkEnd::Drain) => Poll::Ready(ParkOutcome::Drain),
                None => {
                    let index = self.id.index();
                    if inner.wakers.len() <= index {
                        inner.wakers.resize(index + 1, None);
                    }
                    let waker = &mut inner.wakers[index];
                    if !waker
                        .as_ref()
                        .is_some_and(|known| known.will_wake(context.waker()))
                    {
                        *waker = Some(context.waker().clone());
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// What came of the last wake. To be said before the work that was found is started, because
    /// a chain goes on from here.
    pub fn complete(&mut self, result: WakeResult) {
        let now = self.engine.now();
        self.engine
            .act(|state, woken| state.complete(self.id, result, now, woken));
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // Before leaving: afterwards the slot, and the waker in it, may be a new waiter's.
        if let Some(waker) = self.engine.inner.lock().wakers.get_mut(self.id.index()) {
            *waker = None;
        }
        let now = self.engine.now();
        self.engine
            .act(|state, woken| state.leave(self.id, now, woken));
    }
}
