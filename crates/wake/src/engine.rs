//! [`State`] behind a lock, with one task for all deadlines and timers.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::{
    state::{HoldRefusal, Limits, ParkOutcome, State, WakeResult},
    sync::Mutex,
    timers::TimerId,
    topic::{Cause, EngineTime, WaitKey, Wake},
    view::{DoorCounters, WaitedKey, WaiterPage},
    waiters::WaiterId,
};

/// The engine of one process. Its methods wait for nothing but its lock, which is never held across
/// an await or while a task is woken.
#[derive(Debug)]
pub struct Engine {
    inner: Mutex<Inner>,
    began: Instant,
    /// Something is due earlier than what the clock task sleeps for.
    earlier: Notify,
}

#[derive(Debug)]
struct Inner {
    state: State,
    wakers: Vec<Option<Waker>>,
    /// What the clock task sleeps for.
    sleeps_until: Option<EngineTime>,
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

    /// Registers a waiter at `keys` (at least one) for at most `hold`. Register first, then check
    /// the store: see the crate's documentation.
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

    /// Something may be there for the waiters at the wake's topics.
    pub fn wake(&self, wake: &Wake, cause: Cause) {
        let now = self.now();
        self.act(|state, woken| state.wake(wake, cause, now, woken));
    }

    /// Wakes after `delay`. `None` when there are too many timers; then the fallback
    /// finds what is due.
    pub fn wake_after(&self, wake: Wake, delay: Duration) -> Option<TimerId> {
        let due = self.now().after(delay);
        self.act(|state, _| state.wake_at(wake, due))
    }

    /// Sets the recheck timer of `key`: one of its waiters checks the store again after `delay`, if
    /// nothing wakes it before. Without waiters it does nothing.
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

    /// Fires the timers and ends the parks that are due. [`Engine::run`] calls it in time.
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

    /// Every key of `door` that has waiters.
    #[must_use]
    pub fn waiting(&self, door: &str) -> Vec<WaitedKey> {
        self.inner.lock().state.waiting(door)
    }

    #[must_use]
    pub fn page(&self, offset: usize, limit: usize) -> WaiterPage {
        let now = self.now();
        self.inner.lock().state.page(offset, limit, now)
    }

    /// How many wakes there were for `door`: see [`State::wake_count`].
    #[must_use]
    pub fn wake_count(&self, door: &str) -> u64 {
        self.inner.lock().state.wake_count(door)
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

    /// Runs one step of the state machine. Tasks are woken after the lock is released, so that they
    /// do not wait for it.
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

/// One parked request or stream. Dropping it removes it at once, and a wake that it was given and
/// has not completed goes to the next waiter that can use it.
#[derive(Debug)]
pub struct Waiter {
    engine: Arc<Engine>,
    id: WaiterId,
}

impl Waiter {
    /// Waits for a wake, the deadline or the drain. Dropping the future loses nothing: the next
    /// park returns the wake, or it is passed on when the waiter is dropped.
    pub async fn park(&mut self) -> ParkOutcome {
        poll_fn(|context| {
            let mut inner = self.engine.inner.lock();
            match inner.state.take(self.id) {
                Some(outcome) => Poll::Ready(outcome),
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

    /// Reports the result of the last wake. Call it before working on the found item, because this
    /// passes a chain on.
    pub fn complete(&mut self, result: WakeResult) {
        let now = self.engine.now();
        self.engine
            .act(|state, woken| state.complete(self.id, result, now, woken));
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // Before leaving: afterwards a new waiter may have the slot and its waker.
        if let Some(waker) = self.engine.inner.lock().wakers.get_mut(self.id.index()) {
            *waker = None;
        }
        let now = self.engine.now();
        self.engine
            .act(|state, woken| state.leave(self.id, now, woken));
    }
}
