//! Heartbeats of the workers whose claims are held on this node: one statement for all of them.
//!
//! A worker that waits for a task has no request of its own to send heartbeats with, and needs none:
//! its held claim shows that it is there.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};
use uuid::Uuid;
use wakeline_bus::Bus;

use super::OUTAGE_PAUSE;
use crate::store::Store;

/// Statements for all workers in the time after which a worker is lost.
const PARTS: u32 = 3;
/// The shortest pause between two statements: claims that come one after another share one.
const SHORTEST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct HeldWorkers {
    store: Arc<dyn Store>,
    bus: Arc<Bus>,
    schedule: Mutex<HeartbeatSchedule>,
    /// There is a worker without a heartbeat of this node.
    newcomers: Notify,
}

/// Counts a held claim of the worker until it is dropped.
#[derive(Debug)]
pub(super) struct HeldWorker {
    all: Arc<HeldWorkers>,
    worker: Uuid,
}

impl HeldWorkers {
    pub(super) fn new(store: Arc<dyn Store>, bus: Arc<Bus>, worker_timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            store,
            bus,
            schedule: Mutex::new(HeartbeatSchedule::new(worker_timeout / PARTS)),
            newcomers: Notify::new(),
        })
    }

    /// Sends heartbeats until no claim is held any more.
    async fn run(self: Arc<Self>) {
        loop {
            let action = self.schedule().next(Instant::now());
            match action {
                NextHeartbeats::None => return,
                NextHeartbeats::After(pause) => {
                    let _ = timeout(pause, self.newcomers.notified()).await;
                }
                NextHeartbeats::Now(workers) => {
                    let sent = self.store.heartbeats(workers).commit(&self.bus).await;
                    if let Err(error) = sent {
                        tracing::warn!(%error, "workers whose claims are held had no heartbeat; trying again");
                        self.schedule().retry_at(Instant::now() + OUTAGE_PAUSE);
                    }
                }
            }
        }
    }

    fn schedule(&self) -> MutexGuard<'_, HeartbeatSchedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldWorker {
    pub(super) fn new(all: &Arc<HeldWorkers>, worker: Uuid) -> Self {
        let entered = all.schedule().enter(worker);
        match entered {
            Entered::Known => {}
            Entered::Newcomer => all.newcomers.notify_one(),
            Entered::First => {
                tokio::spawn(all.clone().run());
            }
        }
        Self {
            all: all.clone(),
            worker,
        }
    }
}

impl Drop for HeldWorker {
    fn drop(&mut self) {
        self.all.schedule().leave(self.worker);
    }
}

/// When which workers get a heartbeat.
#[derive(Debug)]
struct HeartbeatSchedule {
    /// Each with the number of its held claims.
    workers: HashMap<Uuid, u32>,
    /// The workers that came after the last statement: their last heartbeat may be old.
    newcomers: HashSet<Uuid>,
    interval: Duration,
    shortest: Duration,
    last: Option<Instant>,
    /// When the next statement for all workers is due.
    all_due: Option<Instant>,
    is_running: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Entered {
    /// Its heartbeat is on the way, or was not long ago.
    Known,
    Newcomer,
    /// Heartbeats have to be sent from now on.
    First,
}

#[derive(Debug, PartialEq, Eq)]
enum NextHeartbeats {
    Now(Vec<Uuid>),
    After(Duration),
    /// No claim is held, and the sending ends.
    None,
}

impl HeartbeatSchedule {
    fn new(interval: Duration) -> Self {
        Self {
            workers: HashMap::new(),
            newcomers: HashSet::new(),
            interval,
            shortest: SHORTEST.min(interval),
            last: None,
            all_due: None,
            is_running: false,
        }
    }

    fn enter(&mut self, worker: Uuid) -> Entered {
        let claims = self.workers.entry(worker).or_default();
        *claims += 1;
        if *claims > 1 {
            return Entered::Known;
        }
        let is_first_newcomer = self.newcomers.is_empty();
        self.newcomers.insert(worker);
        if !self.is_running {
            self.is_running = true;
            return Entered::First;
        }
        if is_first_newcomer {
            Entered::Newcomer
        } else {
            Entered::Known
        }
    }

    fn leave(&mut self, worker: Uuid) {
        if let Some(claims) = self.workers.get_mut(&worker) {
            *claims -= 1;
            if *claims == 0 {
                self.workers.remove(&worker);
                self.newcomers.remove(&worker);
            }
        }
        if self.workers.is_empty() {
            // After a crowd has gone its memory goes too.
            self.workers = HashMap::new();
            self.newcomers = HashSet::new();
            self.all_due = None;
        }
    }

    fn next(&mut self, now: Instant) -> NextHeartbeats {
        if self.workers.is_empty() {
            self.is_running = false;
            return NextHeartbeats::None;
        }
        let soonest = self.last.map_or(now, |last| last + self.shortest);
        let all_due = *self.all_due.get_or_insert(soonest);
        let due = if self.newcomers.is_empty() {
            all_due
        } else {
            all_due.min(soonest)
        };
        if due > now {
            return NextHeartbeats::After(due - now);
        }
        self.last = Some(now);
        let newcomers = std::mem::take(&mut self.newcomers);
        if all_due > now {
            return NextHeartbeats::Now(newcomers.into_iter().collect());
        }
        self.all_due = Some(now + self.interval);
        NextHeartbeats::Now(self.workers.keys().copied().collect())
    }

    /// It is not known which workers have had their heartbeat.
    fn retry_at(&mut self, at: Instant) {
        self.all_due = Some(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(20);

    fn worker(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn sorted(next: NextHeartbeats) -> Vec<Uuid> {
        match next {
            NextHeartbeats::Now(mut workers) => {
                workers.sort_unstable();
                workers
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_held_workers_share_a_heartbeat_at_each_interval() {
        let (mut schedule, start) = (HeartbeatSchedule::new(INTERVAL), Instant::now());
        assert_eq!(schedule.enter(worker(1)), Entered::First);
        assert_eq!(schedule.enter(worker(2)), Entered::Known);
        assert_eq!(sorted(schedule.next(start)), [worker(1), worker(2)]);
        for round in 1..4 {
            let due = start + round * INTERVAL;
            let early = Duration::from_millis(1);
            let next = schedule.next(due - early);
            assert_eq!(next, NextHeartbeats::After(early));
            assert_eq!(sorted(schedule.next(due)), [worker(1), worker(2)]);
        }
    }

    #[test]
    fn newcomers_share_a_heartbeat_a_second() {
        let (mut schedule, start) = (HeartbeatSchedule::new(INTERVAL), Instant::now());
        schedule.enter(worker(1));
        schedule.next(start);
        assert_eq!(schedule.enter(worker(2)), Entered::Newcomer);
        assert_eq!(schedule.enter(worker(3)), Entered::Known);
        assert_eq!(schedule.next(start), NextHeartbeats::After(SHORTEST));
        let next = schedule.next(start + SHORTEST);
        assert_eq!(sorted(next), [worker(2), worker(3)]);
        let left = INTERVAL - SHORTEST;
        let next = schedule.next(start + SHORTEST);
        assert_eq!(next, NextHeartbeats::After(left));
        let next = schedule.next(start + INTERVAL);
        assert_eq!(sorted(next), [worker(1), worker(2), worker(3)]);
    }

    #[test]
    fn a_worker_has_heartbeats_until_its_last_claim_ends() {
        let (mut schedule, start) = (HeartbeatSchedule::new(INTERVAL), Instant::now());
        for held in [1, 1, 2] {
            schedule.enter(worker(held));
        }
        schedule.next(start);
        schedule.leave(worker(1));
        schedule.leave(worker(2));
        let next = schedule.next(start + INTERVAL);
        assert_eq!(sorted(next), [worker(1)]);
        schedule.leave(worker(1));
        let next = schedule.next(start + 2 * INTERVAL);
        assert_eq!(next, NextHeartbeats::None);
        assert_eq!(schedule.enter(worker(1)), Entered::First);
    }

    /// Claims that come and go cost no more than claims that stay.
    #[test]
    fn a_claim_that_comes_back_at_once_waits_for_the_next_second() {
        let (mut schedule, start) = (HeartbeatSchedule::new(INTERVAL), Instant::now());
        schedule.enter(worker(1));
        schedule.next(start);
        schedule.leave(worker(1));
        assert_eq!(schedule.next(start), NextHeartbeats::None);
        schedule.enter(worker(1));
        assert_eq!(schedule.next(start), NextHeartbeats::After(SHORTEST));
    }

    #[test]
    fn after_a_failure_all_are_tried_again() {
        let (mut schedule, start) = (HeartbeatSchedule::new(INTERVAL), Instant::now());
        schedule.enter(worker(1));
        schedule.next(start);
        schedule.enter(worker(2));
        let later = start + 2 * SHORTEST;
        assert_eq!(sorted(schedule.next(later)), [worker(2)]);
        schedule.retry_at(later + OUTAGE_PAUSE);
        assert_eq!(schedule.next(later), NextHeartbeats::After(OUTAGE_PAUSE));
        let next = schedule.next(later + OUTAGE_PAUSE);
        assert_eq!(sorted(next), [worker(1), worker(2)]);
    }
}
