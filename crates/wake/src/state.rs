//! The engine's rules: a pure state machine. Every step is given the time and reports in `woken`
//! which waiters' parks must return. Nothing here waits, reads a clock or wakes a task.

use std::collections::BTreeSet;

use crate::{
    timers::{TimerId, Timers},
    topic::{Cause, EngineTime, Topic, WaitKey, Wake, WakeMode},
    topics::{KeySlot, Topics},
    view::DoorCounters,
    waiters::{Permit, WaiterEntry, WaiterId, Waiters},
};

/// The limits of the engine's memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub waiters: usize,
    pub waiters_per_topic: usize,
    pub timers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            waiters: 1_000_000,
            waiters_per_topic: 200_000,
            timers: 1_000_000,
        }
    }
}

/// Why a new hold is refused. The others stay held; trying again later is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HoldRefusal {
    #[error("too many requests are held here; try again later")]
    Full,
    #[error("too many requests wait for the same thing; try again later")]
    TopicFull,
    #[error("the server is shutting down; try again on another node or later")]
    Draining,
}

/// How a park ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParkOutcome {
    /// Check the store again, and report the result with `complete`.
    Woken {
        cause: Cause,
        /// When the wake was given.
        at: EngineTime,
        /// Which of the waiter's keys the wake was for, counted from zero.
        key: usize,
    },
    Deadline,
    Drain,
}

/// The result of a wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeResult {
    /// The waiter found work. A chain wakes the next one.
    Found,
    /// The waiter found nothing (any more). The wake ends here.
    Nothing,
    /// The waiter found something that is not for it: the wake goes to the next one after it.
    PassOn,
}

/// See the module.
#[derive(Debug)]
pub struct State {
    limits: Limits,
    waiters: Waiters,
    topics: Topics,
    deadlines: BTreeSet<(EngineTime, WaiterId)>,
    timers: Timers,
    next_seq: u64,
    draining: bool,
}

impl State {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            waiters: Waiters::default(),
            topics: Topics::default(),
            deadlines: BTreeSet::new(),
            timers: Timers::new(limits.timers),
            next_seq: 0,
            draining: false,
        }
    }

    /// Registers a waiter at `keys` until `until`. A refusal changes nothing.
    pub fn register(
        &mut self,
        keys: &[WaitKey],
        until: EngineTime,
        now: EngineTime,
    ) -> Result<WaiterId, HoldRefusal> {
        if let Err(refusal) = self.admit(keys) {
            if let Some(key) = keys.first() {
                self.topics.counters(&key.topic).refused += 1;
            }
            return Err(refusal);
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        let id = self.waiters.reserve();
        let keys: Box<[KeySlot]> = keys
            .iter()
            .map(|key| self.topics.slot(key, seq, id))
            .collect();
        if let Some(first) = keys.first() {
            let counters = self.topics.counters_at(first.topic);
            counters.waiters += 1;
            counters.registered += 1;
        }
        let waiter = WaiterEntry {
            seq,
            since: now,
            until,
            keys,
            pending: None,
            in_check: None,
            last_wake: None,
            timed_out: false,
        };
        self.waiters.put(id, waiter);
        self.deadlines.insert((until, id));
        Ok(id)
    }

    fn admit(&self, keys: &[WaitKey]) -> Result<(), HoldRefusal> {
        if self.draining {
            return Err(HoldRefusal::Draining);
        }
        if self.waiters.len() >= self.limits.waiters {
            return Err(HoldRefusal::Full);
        }
        for key in keys {
            if let Some(topic) = self.topics.find(&key.topic)
                && self.topics.get(topic).waiters as usize >= self.limits.waiters_per_topic
            {
                return Err(HoldRefusal::TopicFull);
            }
        }
        Ok(())
    }

    /// Gives the wake to those that have waited longest.
    pub fn wake(&mut self, wake: &Wake, cause: Cause, now: EngineTime, woken: &mut Vec<WaiterId>) {
        let door = wake.topics.first().map(Topic::door).unwrap_or_default();
        if let Some(counters) = self.topics.known_counters(door) {
            counters.wakes += 1;
        }
        self.give(wake, None, cause, now, woken);
    }

    fn give(
        &mut self,
        wake: &Wake,
        after: Option<u64>,
        cause: Cause,
        now: EngineTime,
        woken: &mut Vec<WaiterId>,
    ) {
        let topics: Vec<u32> = wake
            .topics
            .iter()
            .filter_map(|topic| self.topics.find(topic))
            .collect();
        let count = match wake.mode {
            WakeMode::All => u32::MAX,
            WakeMode::Count(count) => count,
            WakeMode::Chain => 1,
        };
        for group in self.topics.groups_of(&topics, wake.group.as_ref()) {
            for _ in 0..count {
                let Some((id, slot)) = self.longest(&group, after) else {
                    break;
                };
                self.hand_over(id, slot, wake, after, cause, now);
                woken.push(id);
            }
        }
    }

    fn longest(&self, slots: &[KeySlot], after: Option<u64>) -> Option<(WaiterId, KeySlot)> {
        slots
            .iter()
            .filter_map(|&slot| {
                let (seq, id) = self.topics.group(slot).line.first_after(after)?;
                Some((seq, id, slot))
            })
            .min_by_key(|(seq, ..)| *seq)
            .map(|(_, id, slot)| (id, slot))
    }

    fn hand_over(
        &mut self,
        id: WaiterId,
        slot: KeySlot,
        wake: &Wake,
        after: Option<u64>,
        cause: Cause,
        now: EngineTime,
    ) {
        let waiter = self.waiters.get_mut(id);
        let key = waiter
            .keys
            .iter()
            .position(|own| *own == slot)
            .and_then(|key| u32::try_from(key).ok())
            .expect("a waiter in a line has this key");
        waiter.pending = Some(Box::new(Permit {
            topics: wake.topics.clone(),
            at: now,
            after,
            key,
            mode: wake.mode,
            cause,
        }));
        waiter.last_wake = Some((cause, now));
        self.leave_lines(id);
    }

    fn leave_lines(&mut self, id: WaiterId) {
        let waiter = self.waiters.get(id);
        let seq = waiter.seq;
        for key in 0..waiter.keys.len() {
            let slot = self.waiters.get(id).keys[key];
            self.topics.group_mut(slot).line.remove(seq);
        }
    }

    fn enter_lines(&mut self, id: WaiterId) {
        let waiter = self.waiters.get(id);
        let seq = waiter.seq;
        for key in 0..waiter.keys.len() {
            let slot = self.waiters.get(id).keys[key];
            self.topics.group_mut(slot).line.insert(seq, id);
        }
    }

    /// How the park of `id` ends now; `None`: it goes on waiting.
    ///
    /// A pending wake comes before the deadline, so that no wake is lost. From here on the waiter
    /// can be given the next wake: a wake that comes while it checks makes its next park return at
    /// once.
    pub fn take(&mut self, id: WaiterId) -> Option<ParkOutcome> {
        if self.draining {
            return Some(ParkOutcome::Drain);
        }
        let waiter = self.waiters.get_mut(id);
        if let Some(permit) = waiter.pending.take() {
            let outcome = ParkOutcome::Woken {
                cause: permit.cause,
                at: permit.at,
                key: permit.key as usize,
            };
            waiter.in_check = Some(permit);
            self.enter_lines(id);
            return Some(outcome);
        }
        waiter.timed_out.then_some(ParkOutcome::Deadline)
    }

    /// `id` has checked the store after a wake. Without a wake (the check before the first park)
    /// nothing happens.
    pub fn complete(
        &mut self,
        id: WaiterId,
        result: WakeResult,
        now: EngineTime,
        woken: &mut Vec<WaiterId>,
    ) {
        let waiter = self.waiters.get_mut(id);
        let seq = waiter.seq;
        let Some(permit) = waiter.in_check.take() else {
            return;
        };
        let counters = self.counters_of(id);
        match result {
            WakeResult::Found => counters.found[permit.cause as usize] += 1,
            WakeResult::Nothing | WakeResult::PassOn => {
                counters.nothing[permit.cause as usize] += 1;
            }
        }
        match (result, permit.mode) {
            (WakeResult::Found, WakeMode::Chain) => {
                // To another waiter: this one has work now.
                self.leave_lines(id);
                self.pass_on(id, &permit, None, now, woken);
                if self.waiters.get(id).pending.is_none() {
                    self.enter_lines(id);
                }
            }
            (WakeResult::PassOn, WakeMode::Chain | WakeMode::Count(_)) => {
                self.pass_on(id, &permit, Some(seq), now, woken);
            }
            (WakeResult::Found | WakeResult::Nothing, _) | (WakeResult::PassOn, WakeMode::All) => {}
        }
    }

    fn pass_on(
        &mut self,
        id: WaiterId,
        permit: &Permit,
        after: Option<u64>,
        now: EngineTime,
        woken: &mut Vec<WaiterId>,
    ) {
        let slot = self.waiters.get(id).keys[permit.key as usize];
        let mode = match permit.mode {
            WakeMode::Chain => WakeMode::Chain,
            WakeMode::All | WakeMode::Count(_) => WakeMode::Count(1),
        };
        let group = Some(self.topics.group(slot).name.clone());
        let wake = Wake {
            topics: permit.topics.clone(),
            group,
            mode,
        };
        self.give(&wake, after, permit.cause, now, woken);
    }

    /// Removes `id`. A wake that it was given and has not completed goes to the next waiter that can
    /// use it.
    pub fn leave(&mut self, id: WaiterId, now: EngineTime, woken: &mut Vec<WaiterId>) {
        self.leave_lines(id);
        let waiter = self.waiters.get_mut(id);
        let unused = [waiter.pending.take(), waiter.in_check.take()];
        let until = waiter.until;
        for permit in unused.into_iter().flatten() {
            if permit.mode != WakeMode::All {
                self.pass_on(id, &permit, permit.after, now, woken);
            }
        }
        self.counters_of(id).waiters -= 1;
        self.deadlines.remove(&(until, id));
        for slot in self.waiters.take(id).keys {
            if let Some(recheck) = self.topics.vacate(slot) {
                self.timers.cancel(recheck);
            }
        }
    }

    /// Wakes at `due`. `None` past the limit of timers: the fallback finds what is due.
    pub fn wake_at(&mut self, wake: Wake, due: EngineTime) -> Option<TimerId> {
        self.timers.set(due, wake)
    }

    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.timers.cancel(timer)
    }

    /// Lets a waiter at `key` check again at `due`, when there may be something by what the store
    /// says. A key has one recheck timer, the earliest; it is removed with the last waiter.
    pub fn recheck_at(&mut self, key: &WaitKey, due: EngineTime) {
        let Some(slot) = self.topics.find_key(key) else {
            return;
        };
        let current = self
            .topics
            .group(slot)
            .recheck
            .filter(|recheck| self.timers.is_set(*recheck));
        if current.is_some_and(|recheck| recheck.due() <= due) {
            return;
        }
        if let Some(later) = current {
            self.timers.cancel(later);
        }
        let wake = Wake::chain(key.topic.clone()).in_group(key.group.clone());
        self.topics.group_mut(slot).recheck = self.timers.set(due, wake);
    }

    /// The earliest deadline or timer.
    #[must_use]
    pub fn next_due(&self) -> Option<EngineTime> {
        let deadline = self.deadlines.first().map(|(until, _)| *until);
        [deadline, self.timers.next_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Fires the timers that are due, and ends the parks whose deadline has come.
    pub fn advance(&mut self, now: EngineTime, woken: &mut Vec<WaiterId>) {
        while let Some(wake) = self.timers.take_due(now) {
            self.wake(&wake, Cause::Timer, now, woken);
        }
        while let Some(&(until, id)) = self.deadlines.first() {
            if until > now {
                break;
            }
            self.deadlines.pop_first();
            self.waiters.get_mut(id).timed_out = true;
            woken.push(id);
        }
    }

    /// From here on every park ends with [`ParkOutcome::Drain`] and every registration is refused.
    pub fn drain(&mut self, woken: &mut Vec<WaiterId>) {
        self.draining = true;
        woken.extend(self.waiters.ids());
    }

    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    #[must_use]
    pub fn held(&self) -> usize {
        self.waiters.len()
    }

    #[must_use]
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    #[must_use]
    pub fn timer_count(&self) -> usize {
        self.timers.len()
    }

    #[must_use]
    pub fn doors(&self) -> &[(String, DoorCounters)] {
        self.topics.doors()
    }

    /// How many wakes there were for `door`. As long as it stays the same, a check that found
    /// nothing in the store need not be repeated.
    #[must_use]
    pub fn wake_count(&self, door: &str) -> u64 {
        let mut doors = self.topics.doors().iter();
        doors
            .find(|(name, _)| name == door)
            .map_or(0, |(_, counters)| counters.wakes)
    }

    pub(crate) fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Waiters in the order of their deadlines.
    pub(crate) fn by_deadline(&self) -> impl Iterator<Item = &WaiterEntry> {
        self.deadlines.iter().map(|(_, id)| self.waiters.get(*id))
    }

    pub(crate) fn keys_of_waiter(&self, waiter: &WaiterEntry) -> Vec<WaitKey> {
        waiter
            .keys
            .iter()
            .map(|&slot| WaitKey {
                topic: self.topics.get(slot.topic).name.clone(),
                group: self.topics.group(slot).name.clone(),
            })
            .collect()
    }

    fn counters_of(&mut self, id: WaiterId) -> &mut DoorCounters {
        let topic = self.waiters.get(id).keys[0].topic;
        self.topics.counters_at(topic)
    }
}
