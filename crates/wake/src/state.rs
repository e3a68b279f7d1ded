//! The engine's rules: a pure state machine. Every step is given the time and reports in `woken`
//! which waiters' parks must return; nothing here waits, reads a clock or calls out.

use std::collections::BTreeSet;

use crate::{
    seen::DoorCounters,
    timers::{TimerId, Timers},
    topic::{Cause, How, Moment, Place, Topic, Wake},
    topics::{Stand, Topics},
    waiters::{Permit, WaiterEntry, WaiterId, Waiters},
};

/// How much the engine takes on.
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

/// Why a new hold is refused. Nothing already held suffers; trying again later is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("too many requests are held here; try again later")]
    Full,
    #[error("too many requests wait for the same thing; try again later")]
    TopicFull,
    #[error("the server is shutting down; try again on another node or later")]
    Draining,
}

/// What a park finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A wake, when it was given, and for which of the waiter's places.
    Wake(Cause, Moment, usize),
    Deadline,
    Drain,
}

/// What a woken waiter says of the wake it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It found work. A chain goes on from here.
    Found,
    /// There was nothing (any more). The wake ends here.
    Nothing,
    /// There was something, but not for this waiter: the next one that came after it is asked.
    Declined,
}

/// See the module.
#[derive(Debug)]
pub struct State {
    limits: Limits,
    waiters: Waiters,
    topics: Topics,
    deadlines: BTreeSet<(Moment, WaiterId)>,
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

    /// A new waiter at `places` until `until`. Nothing changes when it is refused.
    pub fn register(
        &mut self,
        places: &[Place],
        until: Moment,
        now: Moment,
    ) -> Result<WaiterId, Refused> {
        if let Err(refused) = self.admit(places) {
            if let Some(place) = places.first() {
                self.topics.counters(&place.topic).refused += 1;
            }
            return Err(refused);
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        let id = self.waiters.reserve();
        let places: Box<[Stand]> = places
            .iter()
            .map(|place| self.topics.stand(place, seq, id))
            .collect();
        if let Some(first) = places.first() {
            let counters = self.topics.counters_at(first.topic);
            counters.waiters += 1;
            counters.registered += 1;
        }
        let waiter = WaiterEntry {
            seq,
            since: now,
            until,
            places,
            pending: None,
            hand: None,
            last_wake: None,
            timed_out: false,
        };
        self.waiters.put(id, waiter);
        self.deadlines.insert((until, id));
        Ok(id)
    }

    fn admit(&self, places: &[Place]) -> Result<(), Refused> {
        if self.draining {
            return Err(Refused::Draining);
        }
        if self.waiters.len() >= self.limits.waiters {
            return Err(Refused::Full);
        }
        for place in places {
            if let Some(topic) = self.topics.find(&place.topic)
                && self.topics.get(topic).waiters as usize >= self.limits.waiters_per_topic
            {
                return Err(Refused::TopicFull);
            }
        }
        Ok(())
    }

    /// Something may be there: gives the wake to those who have waited longest.
    pub fn publish(&mut self, wake: &Wake, cause: Cause, now: Moment, woken: &mut Vec<WaiterId>) {
        self.count(wake);
        self.give(wake, None, cause, now, woken);
    }

    fn count(&mut self, wake: &Wake) {
        let door = wake.topics.first().map(Topic::door).unwrap_or_default();
        if let Some(counters) = self.topics.known_counters(door) {
            counters.published += 1;
        }
    }

    fn give(
        &mut self,
        wake: &Wake,
        after: Option<u64>,
        cause: Cause,
        now: Moment,
        woken: &mut Vec<WaiterId>,
    ) {
        let topics: Vec<u32> = wake
            .topics
            .iter()
            .filter_map(|topic| self.topics.find(topic))
            .collect();
        for lane in self.topics.lanes_of(&topics, wake.lane.as_ref()) {
            match wake.how {
                How::All => {
                    for stand in lane {
                        for id in self.topics.lane_mut(stand).line.ids() {
                            self.hand_over(id, stand, wake, after, cause, now);
                            woken.push(id);
                        }
                    }
                }
                How::Count(count) => {
                    for _ in 0..count {
                        let Some((id, stand)) = self.longest(&lane, after) else {
                            break;
                        };
                        self.hand_over(id, stand, wake, after, cause, now);
                        woken.push(id);
                    }
                }
                How::Chain => {
                    if let Some((id, stand)) = self.longest(&lane, after) {
                        self.hand_over(id, stand, wake, after, cause, now);
                        woken.push(id);
                    }
                }
            }
        }
    }

    fn longest(&self, stands: &[Stand], after: Option<u64>) -> Option<(WaiterId, Stand)> {
        stands
            .iter()
            .filter_map(|&stand| {
                let (seq, id) = self.topics.lane(stand).line.first_after(after)?;
                Some((seq, id, stand))
            })
            .min_by_key(|(seq, ..)| *seq)
            .map(|(_, id, stand)| (id, stand))
    }

    fn hand_over(
        &mut self,
        id: WaiterId,
        stand: Stand,
        wake: &Wake,
        after: Option<u64>,
        cause: Cause,
        now: Moment,
    ) {
        let waiter = self.waiters.get_mut(id);
        let place = waiter
            .places
            .iter()
            .position(|own| *own == stand)
            .and_then(|place| u32::try_from(place).ok())
            .expect("a waiter in a line stands there");
        waiter.pending = Some(Box::new(Permit {
            topics: wake.topics.clone(),
            at: now,
            after,
            place,
            how: wake.how,
            cause,
        }));
        waiter.last_wake = Some((cause, now));
        self.leave_lines(id);
    }

    fn leave_lines(&mut self, id: WaiterId) {
        let waiter = self.waiters.get(id);
        let seq = waiter.seq;
        for place in 0..waiter.places.len() {
            let stand = self.waiters.get(id).places[place];
            self.topics.lane_mut(stand).line.remove(seq);
        }
    }

    fn enter_lines(&mut self, id: WaiterId) {
        let waiter = self.waiters.get(id);
        let seq = waiter.seq;
        for place in 0..waiter.places.len() {
            let stand = self.waiters.get(id).places[place];
            self.topics.lane_mut(stand).line.insert(seq, id);
        }
    }

    /// What a park of `id` finds now; `None` means it must go on waiting.
    ///
    /// A pending wake comes before the deadline, so that what was given is looked at. From here
    /// on the waiter can be given the next wake: what is published while it checks makes its next
    /// park return at once.
    pub fn take(&mut self, id: WaiterId) -> Option<Taken> {
        if self.draining {
            return Some(Taken::Drain);
        }
        let waiter = self.waiters.get_mut(id);
        if let Some(permit) = waiter.pending.take() {
            let taken = Taken::Wake(permit.cause, permit.at, permit.place as usize);
            waiter.hand = Some(permit);
            self.enter_lines(id);
            return Some(taken);
        }
        waiter.timed_out.then_some(Taken::Deadline)
    }

    /// What `id` says of the wake that its park returned. Without a wake in hand (the check
    /// before the first park) nothing happens.
    pub fn settle(
        &mut self,
        id: WaiterId,
        settled: Settled,
        now: Moment,
        woken: &mut Vec<WaiterId>,
    ) {
        let waiter = self.waiters.get_mut(id);
        let seq = waiter.seq;
        let Some(permit) = waiter.hand.take() else {
            return;
        };
        let counters = self.counters_of(id);
        match settled {
            Settled::Found => counters.found[permit.cause as usize] += 1,
            Settled::Nothing | Settled::Declined => counters.nothing[permit.cause as usize] += 1,
        }
        match (settled, permit.how) {
            (Settled::Found, How::Chain) => {
                // To somebody else: this one has work now.
                self.leave_lines(id);
                self.pass_on(id, &permit, None, now, woken);
                if self.waiters.get(id).pending.is_none() {
                    self.enter_lines(id);
                }
            }
            (Settled::Declined, How::Chain | How::Count(_)) => {
                self.pass_on(id, &permit, Some(seq), now, woken);
            }
            (Settled::Found | Settled::Nothing, _) | (Settled::Declined, How::All) => {}
        }
    }

    fn pass_on(
        &mut self,
        id: WaiterId,
        permit: &Permit,
        after: Option<u64>,
        now: Moment,
        woken: &mut Vec<WaiterId>,
    ) {
        let stand = self.waiters.get(id).places[permit.place as usize];
        let how = match permit.how {
            How::Chain => How::Chain,
            How::All | How::Count(_) => How::Count(1),
        };
        let lane = Some(self.topics.lane(stand).name.clone());
        let wake = Wake {
            topics: permit.topics.clone(),
            lane,
            how,
        };
        self.give(&wake, after, permit.cause, now, woken);
    }

    /// `id` is gone. A wake that it was given and has not settled goes to the next that can use
    /// it.
    pub fn leave(&mut self, id: WaiterId, now: Moment, woken: &mut Vec<WaiterId>) {
        self.leave_lines(id);
        let waiter = self.waiters.get_mut(id);
        let unused = [waiter.pending.take(), waiter.hand.take()];
        let until = waiter.until;
        for permit in unused.into_iter().flatten() {
            if permit.how != How::All {
                self.pass_on(id, &permit, permit.after, now, woken);
            }
        }
        self.counters_of(id).waiters -= 1;
        self.deadlines.remove(&(until, id));
        for stand in self.waiters.take(id).places {
            if let Some(alarm) = self.topics.vacate(stand) {
                self.timers.cancel(alarm);
            }
        }
    }

    /// Publishes `wake` when `due` comes. `None` past the limit of timers: the fallback finds it.
    pub fn wake_at(&mut self, wake: Wake, due: Moment) -> Option<TimerId> {
        self.timers.set(due, wake)
    }

    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.timers.cancel(timer)
    }

    /// Those who wait at `place` should look again at `due`: the store said that something may be
    /// there then. A place has one alarm, the earliest asked for; it goes when they all leave.
    pub fn alarm(&mut self, place: &Place, due: Moment) {
        let Some(stand) = self.topics.find_place(place) else {
            return;
        };
        let current = self
            .topics
            .lane(stand)
            .alarm
            .filter(|alarm| self.timers.is_set(*alarm));
        if current.is_some_and(|alarm| alarm.due() <= due) {
            return;
        }
        if let Some(later) = current {
            self.timers.cancel(later);
        }
        let wake = Wake::chain(place.topic.clone()).in_lane(place.lane.clone());
        self.topics.lane_mut(stand).alarm = self.timers.set(due, wake);
    }

    /// The earliest deadline or timer.
    #[must_use]
    pub fn next_due(&self) -> Option<Moment> {
        let deadline = self.deadlines.first().map(|(until, _)| *until);
        [deadline, self.timers.next_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Lets time pass: timers that are due publish, deadlines that have come end their parks.
    pub fn advance(&mut self, now: Moment, woken: &mut Vec<WaiterId>) {
        while let Some(wake) = self.timers.take_due(now) {
            self.count(&wake);
            self.give(&wake, None, Cause::Timer, now, woken);
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

    /// From here on every park returns "drain" and every registration is refused.
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

    /// How many wakes have been published for `door`. As long as it stays the same, whoever asked
    /// the store and found nothing need not ask again.
    #[must_use]
    pub fn published(&self, door: &str) -> u64 {
        let mut doors = self.topics.doors().iter();
        doors
            .find(|(name, _)| name == door)
            .map_or(0, |(_, counters)| counters.published)
    }

    pub(crate) fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Waiters in the order of their deadlines.
    pub(crate) fn by_deadline(&self) -> impl Iterator<Item = &WaiterEntry> {
        self.deadlines.iter().map(|(_, id)| self.waiters.get(*id))
    }

    pub(crate) fn places_of_waiter(&self, waiter: &WaiterEntry) -> Vec<Place> {
        waiter
            .places
            .iter()
            .map(|&stand| Place {
                topic: self.topics.get(stand.topic).name.clone(),
                lane: self.topics.lane(stand).name.clone(),
            })
            .collect()
    }

    fn counters_of(&mut self, id: WaiterId) -> &mut DoorCounters {
        let topic = self.waiters.get(id).places[0].topic;
        self.topics.counters_at(topic)
    }
}
