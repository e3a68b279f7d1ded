//! The engine's rules: a pure state machine. Every step is given the time and reports in `woken`
//! which waiters' parks must return; nothing here waits, reads a clock or calls out.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::{
    line::Line,
    seen::DoorCounters,
    timers::{TimerId, Timers},
    topic::{Cause, How, Lane, Moment, Place, Topic, Wake},
};

/// Names a registered waiter until it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub(crate) u32);

impl WaiterId {
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

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
    /// A wake, and when it was given.
    Wake(Cause, Moment),
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

/// A wake given to one waiter.
#[derive(Clone, Debug)]
struct Permit {
    topics: Arc<[Topic]>,
    at: Moment,
    /// Everyone up to this one has declined the wake already.
    after: Option<u64>,
    /// Which of the waiter's places it came by.
    place: u32,
    how: How,
    cause: Cause,
}

#[derive(Debug)]
pub(crate) struct WaiterEntry {
    /// Order of arrival. It stays the same however often the waiter is woken in vain.
    seq: u64,
    pub(crate) since: Moment,
    pub(crate) until: Moment,
    places: Box<[Stand]>,
    /// Given, and not yet seen by a park.
    pending: Option<Box<Permit>>,
    /// Seen by a park, and not yet settled: the waiter is checking the store.
    hand: Option<Box<Permit>>,
    pub(crate) last_wake: Option<(Cause, Moment)>,
    timed_out: bool,
}

/// A waiter's place, by index.
#[derive(Clone, Copy, Debug)]
struct Stand {
    topic: u32,
    lane: u32,
}

#[derive(Debug)]
struct TopicEntry {
    name: Topic,
    door: u8,
    waiters: u32,
    lanes: Vec<Option<LaneEntry>>,
}

#[derive(Debug)]
struct LaneEntry {
    name: Lane,
    waiters: u32,
    /// Those without a pending wake: the ones that can be given one.
    line: Line,
    /// When these waiters should look again, if nothing wakes them before.
    alarm: Option<TimerId>,
}

/// See the module.
#[derive(Debug)]
pub struct State {
    limits: Limits,
    waiters: Vec<Option<WaiterEntry>>,
    free_waiters: Vec<u32>,
    topics: Vec<Option<TopicEntry>>,
    free_topics: Vec<u32>,
    by_name: HashMap<Topic, u32>,
    deadlines: BTreeSet<(Moment, WaiterId)>,
    timers: Timers,
    doors: Vec<(String, DoorCounters)>,
    next_seq: u64,
    held: usize,
    draining: bool,
}

impl State {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            waiters: Vec::new(),
            free_waiters: Vec::new(),
            topics: Vec::new(),
            free_topics: Vec::new(),
            by_name: HashMap::new(),
            deadlines: BTreeSet::new(),
            timers: Timers::new(limits.timers),
            doors: Vec::new(),
            next_seq: 0,
            held: 0,
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
                let door = self.door(place.topic.door());
                self.doors[usize::from(door)].1.refused += 1;
            }
            return Err(refused);
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        let id = match self.free_waiters.pop() {
            Some(index) => WaiterId(index),
            None => {
                self.waiters.push(None);
                WaiterId(u32::try_from(self.waiters.len() - 1).expect("the limit is below 2^32"))
            }
        };
        let places: Box<[Stand]> = places
            .iter()
            .map(|place| self.stand(place, seq, id))
            .collect();
        if let Some(first) = places.first() {
            let door = self.topic(first.topic).door;
            let counters = &mut self.doors[usize::from(door)].1;
            counters.waiters += 1;
            counters.registered += 1;
        }
        self.waiters[id.index()] = Some(WaiterEntry {
            seq,
            since: now,
            until,
            places,
            pending: None,
            hand: None,
            last_wake: None,
            timed_out: false,
        });
        self.deadlines.insert((until, id));
        self.held += 1;
        Ok(id)
    }

    fn admit(&self, places: &[Place]) -> Result<(), Refused> {
        if self.draining {
            return Err(Refused::Draining);
        }
        if self.held >= self.limits.waiters {
            return Err(Refused::Full);
        }
        for place in places {
            if let Some(&index) = self.by_name.get(&place.topic)
                && self.topic(index).waiters as usize >= self.limits.waiters_per_topic
            {
                return Err(Refused::TopicFull);
            }
        }
        Ok(())
    }

    fn stand(&mut self, place: &Place, seq: u64, id: WaiterId) -> Stand {
        let topic = match self.by_name.get(&place.topic) {
            Some(&index) => index,
            None => self.new_topic(place.topic.clone()),
        };
        let entry = self.topic_mut(topic);
        entry.waiters += 1;
        let known = entry
            .lanes
            .iter()
            .position(|lane| lane.as_ref().is_some_and(|l| l.name == place.lane));
        let lane = known.unwrap_or_else(|| {
            let fresh = Some(LaneEntry {
                name: place.lane.clone(),
                waiters: 0,
                line: Line::Empty,
                alarm: None,
            });
            if let Some(gap) = entry.lanes.iter().position(Option::is_none) {
                entry.lanes[gap] = fresh;
                gap
            } else {
                entry.lanes.reserve_exact(1);
                entry.lanes.push(fresh);
                entry.lanes.len() - 1
            }
        });
        let stand = Stand {
            topic,
            lane: u32::try_from(lane).expect("lanes fit in 32 bits"),
        };
        let lane = self.lane_mut(stand);
        lane.waiters += 1;
        lane.line.insert(seq, id);
        stand
    }

    fn new_topic(&mut self, name: Topic) -> u32 {
        let door = self.door(name.door());
        let entry = Some(TopicEntry {
            name: name.clone(),
            door,
            waiters: 0,
            lanes: Vec::new(),
        });
        let index = match self.free_topics.pop() {
            Some(index) => {
                self.topics[index as usize] = entry;
                index
            }
            None => {
                self.topics.push(entry);
                u32::try_from(self.topics.len() - 1).expect("topics fit in 32 bits")
            }
        };
        self.by_name.insert(name, index);
        index
    }

    /// Something may be there: gives the wake to those who have waited longest.
    pub fn publish(&mut self, wake: &Wake, cause: Cause, now: Moment, woken: &mut Vec<WaiterId>) {
        self.give(wake, None, cause, now, woken);
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
            .filter_map(|topic| self.by_name.get(topic).copied())
            .collect();
        for lane in self.lanes_of(&topics, wake.lane.as_ref()) {
            match wake.how {
                How::All => {
                    for stand in lane {
                        for id in self.lane_mut(stand).line.ids() {
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

    /// The lanes at `topics`, each with its stands at all of them.
    fn lanes_of(&self, topics: &[u32], only: Option<&Lane>) -> Vec<Vec<Stand>> {
        let mut found: Vec<(&Lane, Vec<Stand>)> = Vec::new();
        for &topic in topics {
            for (index, entry) in self.topic(topic).lanes.iter().enumerate() {
                let Some(entry) = entry else { continue };
                if only.is_some_and(|only| *only != entry.name) {
                    continue;
                }
                let stand = Stand {
                    topic,
                    lane: u32::try_from(index).expect("lanes fit in 32 bits"),
                };
                // A single topic, the usual case, names each lane once: no search.
                let known = if topics.len() == 1 {
                    None
                } else {
                    found.iter_mut().find(|(name, _)| **name == entry.name)
                };
                match known {
                    Some((_, stands)) => stands.push(stand),
                    None => found.push((&entry.name, vec![stand])),
                }
            }
        }
        found.into_iter().map(|(_, stands)| stands).collect()
    }

    fn longest(&self, stands: &[Stand], after: Option<u64>) -> Option<(WaiterId, Stand)> {
        stands
            .iter()
            .filter_map(|&stand| {
                let (seq, id) = self.lane(stand).line.first_after(after)?;
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
        let waiter = self.waiter_mut(id);
        let place = waiter
            .places
            .iter()
            .position(|own| own.topic == stand.topic && own.lane == stand.lane)
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
        let waiter = self.waiter(id);
        let seq = waiter.seq;
        for place in 0..waiter.places.len() {
            let stand = self.waiter(id).places[place];
            self.lane_mut(stand).line.remove(seq);
        }
    }

    fn enter_lines(&mut self, id: WaiterId) {
        let waiter = self.waiter(id);
        let seq = waiter.seq;
        for place in 0..waiter.places.len() {
            let stand = self.waiter(id).places[place];
            self.lane_mut(stand).line.insert(seq, id);
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
        let waiter = self.waiter_mut(id);
        if let Some(permit) = waiter.pending.take() {
            let taken = Taken::Wake(permit.cause, permit.at);
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
        let waiter = self.waiter_mut(id);
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
            (Settled::Found, How::Chain) => self.pass_on(id, &permit, None, now, woken),
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
        let stand = self.waiter(id).places[permit.place as usize];
        let how = match permit.how {
            How::Chain => How::Chain,
            How::All | How::Count(_) => How::Count(1),
        };
        let lane = Some(self.lane(stand).name.clone());
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
        let waiter = self.waiter_mut(id);
        let unused = [waiter.pending.take(), waiter.hand.take()];
        let until = waiter.until;
        for permit in unused.into_iter().flatten() {
            if permit.how != How::All {
                self.pass_on(id, &permit, permit.after, now, woken);
            }
        }
        self.counters_of(id).waiters -= 1;
        self.deadlines.remove(&(until, id));
        let places = self.waiters[id.index()]
            .take()
            .expect("a waiter leaves once")
            .places;
        self.free_waiters.push(id.0);
        self.held -= 1;
        for stand in &places {
            self.vacate(*stand);
        }
    }

    fn vacate(&mut self, stand: Stand) {
        let lane = self.lane_mut(stand);
        lane.waiters -= 1;
        let lane_empty = lane.waiters == 0;
        if let Some(alarm) = lane.alarm.take_if(|_| lane_empty) {
            self.timers.cancel(alarm);
        }
        let entry = self.topic_mut(stand.topic);
        if lane_empty {
            entry.lanes[stand.lane as usize] = None;
        }
        entry.waiters -= 1;
        if entry.waiters == 0 {
            let entry = self.topics[stand.topic as usize]
                .take()
                .expect("the topic is there");
            self.by_name.remove(&entry.name);
            self.free_topics.push(stand.topic);
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
        let Some(&topic) = self.by_name.get(&place.topic) else {
            return;
        };
        let lanes = &self.topic(topic).lanes;
        let lane = lanes
            .iter()
            .position(|lane| lane.as_ref().is_some_and(|l| l.name == place.lane));
        let Some(lane) = lane else { return };
        let stand = Stand {
            topic,
            lane: u32::try_from(lane).expect("lanes fit in 32 bits"),
        };
        let current = self
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
        self.lane_mut(stand).alarm = self.timers.set(due, wake);
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
            self.give(&wake, None, Cause::Timer, now, woken);
        }
        while let Some(&(until, id)) = self.deadlines.first() {
            if until > now {
                break;
            }
            self.deadlines.pop_first();
            self.waiter_mut(id).timed_out = true;
            woken.push(id);
        }
    }

    /// From here on every park returns "drain" and every registration is refused.
    pub fn drain(&mut self, woken: &mut Vec<WaiterId>) {
        self.draining = true;
        for (index, waiter) in self.waiters.iter().enumerate() {
            if waiter.is_some() {
                woken.push(WaiterId(
                    u32::try_from(index).expect("waiters fit in 32 bits"),
                ));
            }
        }
    }

    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    #[must_use]
    pub fn topic_count(&self) -> usize {
        self.by_name.len()
    }

    #[must_use]
    pub fn timer_count(&self) -> usize {
        self.timers.len()
    }

    #[must_use]
    pub fn doors(&self) -> &[(String, DoorCounters)] {
        &self.doors
    }

    /// Whether anyone waits at `topic` in `lane`.
    #[must_use]
    pub fn waits_at(&self, topic: &Topic, lane: &Lane) -> bool {
        self.by_name.get(topic).is_some_and(|&index| {
            self.topic(index)
                .lanes
                .iter()
                .flatten()
                .any(|entry| entry.name == *lane)
        })
    }

    /// Every place of `door` where someone waits, with how many.
    pub(crate) fn places_of<'a>(
        &'a self,
        door: &'a str,
    ) -> impl Iterator<Item = (&'a Topic, &'a Lane, usize)> {
        let door = self.doors.iter().position(|(name, _)| name == door);
        self.topics
            .iter()
            .flatten()
            .filter(move |topic| Some(usize::from(topic.door)) == door)
            .flat_map(|topic| {
                topic
                    .lanes
                    .iter()
                    .flatten()
                    .map(|lane| (&topic.name, &lane.name, lane.waiters as usize))
            })
    }

    /// Waiters in the order of their deadlines.
    pub(crate) fn by_deadline(&self) -> impl Iterator<Item = &WaiterEntry> {
        self.deadlines.iter().map(|(_, id)| self.waiter(*id))
    }

    pub(crate) fn places_of_waiter(&self, waiter: &WaiterEntry) -> Vec<Place> {
        waiter
            .places
            .iter()
            .map(|&stand| Place {
                topic: self.topic(stand.topic).name.clone(),
                lane: self.lane(stand).name.clone(),
            })
            .collect()
    }

    fn door(&mut self, name: &str) -> u8 {
        let known = self.doors.iter().position(|(door, _)| door == name);
        let index = known.unwrap_or_else(|| {
            self.doors.push((name.to_owned(), DoorCounters::default()));
            self.doors.len() - 1
        });
        u8::try_from(index).expect("there are a handful of doors")
    }

    fn counters_of(&mut self, id: WaiterId) -> &mut DoorCounters {
        let topic = self.waiter(id).places[0].topic;
        let door = self.topic(topic).door;
        &mut self.doors[usize::from(door)].1
    }

    fn waiter(&self, id: WaiterId) -> &WaiterEntry {
        self.waiters[id.index()]
            .as_ref()
            .expect("the waiter is registered")
    }

    fn waiter_mut(&mut self, id: WaiterId) -> &mut WaiterEntry {
        self.waiters[id.index()]
            .as_mut()
            .expect("the waiter is registered")
    }

    fn topic(&self, index: u32) -> &TopicEntry {
        self.topics[index as usize]
            .as_ref()
            .expect("the topic has waiters")
    }

    fn topic_mut(&mut self, index: u32) -> &mut TopicEntry {
        self.topics[index as usize]
            .as_mut()
            .expect("the topic has waiters")
    }

    fn lane(&self, stand: Stand) -> &LaneEntry {
        self.topic(stand.topic).lanes[stand.lane as usize]
            .as_ref()
            .expect("the lane has waiters")
    }

    fn lane_mut(&mut self, stand: Stand) -> &mut LaneEntry {
        self.topic_mut(stand.topic).lanes[stand.lane as usize]
            .as_mut()
            .expect("the lane has waiters")
    }
}
