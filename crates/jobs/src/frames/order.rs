//! The order of `frames_invalidate`: clients take a room's length from the last event, so an older
//! event must not come after a newer one.
//!
//! The store numbers the changes of a room's frames under the room's lock. An event waits here until
//! no change with a lower number can still come: the numbers are without gaps, and every write of
//! this node takes a ticket before it begins. Of a gap that no write here explains, another node's
//! event is on its way over the bus; it is waited for, and when it comes too late, it carries the
//! newest count instead of its own.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::RoomEvents;

/// How long the event of another node is waited for: the bus takes milliseconds, or has lost it.
const GAP_PATIENCE: Duration = Duration::from_millis(500);
/// Rooms whose order is kept while nothing is under way in them. Beside other nodes, the first event
/// of another room waits as for a gap.
const IDLE_ROOMS: usize = 10_000;

/// A change of a room's frames, as ZnDraw's clients read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesChange {
    pub room_id: String,
    pub action: String,
    pub indices: Option<Vec<i64>>,
    pub count: Option<i64>,
    pub reason: Option<String>,
}

/// What is known of the changes of one room.
#[derive(Debug, Default)]
struct RoomOrder {
    /// The highest number whose event was sent, and the count that the clients have.
    last: Option<i64>,
    count: Option<i64>,
    tickets: u64,
    under_way: BTreeSet<u64>,
    waiting: BTreeMap<i64, WaitingEvent>,
    /// Whether the waiting events will be looked at by themselves.
    has_timer: bool,
}

#[derive(Debug)]
struct WaitingEvent {
    event: FramesChange,
    since: Instant,
    /// A write with a later ticket began after this change was committed: its number is higher.
    newest_ticket: u64,
}

impl RoomOrder {
    fn begin(&mut self) -> u64 {
        self.tickets += 1;
        self.under_way.insert(self.tickets);
        self.tickets
    }

    fn add(&mut self, number: i64, event: FramesChange, now: Instant) {
        let waiting = WaitingEvent {
            event,
            since: now,
            newest_ticket: self.tickets,
        };
        self.waiting.insert(number, waiting);
    }

    /// The events that can be sent, in their order.
    fn take_ready(&mut self, is_alone: bool, now: Instant) -> Vec<FramesChange> {
        let mut ready = Vec::new();
        while let Some(first) = self.waiting.first_entry() {
            let (number, waiting) = (*first.key(), first.get());
            // The first change of a room has the number 1.
            let follows = number <= self.last.unwrap_or(0) + 1;
            let oldest = self.under_way.first();
            let is_ours = oldest.is_some_and(|oldest| *oldest <= waiting.newest_ticket);
            let is_over = now.duration_since(waiting.since) >= GAP_PATIENCE;
            if !follows && (is_ours || !(is_alone || is_over)) {
                break;
            }
            let mut event = first.remove().event;
            if self.last.is_some_and(|last| number <= last) {
                event.count = event.count.and(self.count);
            } else {
                self.last = Some(number);
                self.count = event.count.or(self.count);
            }
            ready.push(event);
        }
        ready
    }

    fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.waiting.is_empty()
    }
}

/// Sends the events of all rooms in their order.
#[derive(Clone, Debug)]
pub(super) struct OrderedEvents {
    room_events: Arc<dyn RoomEvents>,
    rooms: Arc<Mutex<HashMap<String, RoomOrder>>>,
}

/// A write that may change a room's frames is under way.
#[derive(Debug)]
pub(super) struct ChangeTicket {
    events: OrderedEvents,
    room: String,
    ticket: u64,
}

impl OrderedEvents {
    pub(super) fn new(room_events: Arc<dyn RoomEvents>) -> Self {
        Self {
            room_events,
            rooms: Arc::default(),
        }
    }

    /// Before the write begins: a later ticket means a higher number.
    pub(super) fn begin(&self, room: &str) -> ChangeTicket {
        let mut rooms = self.lock();
        ChangeTicket {
            ticket: order_of(&mut rooms, room).begin(),
            events: self.clone(),
            room: room.to_owned(),
        }
    }

    /// The event of another node.
    pub(super) fn receive(&self, number: i64, event: FramesChange) {
        let room = event.room_id.clone();
        let mut rooms = self.lock();
        order_of(&mut rooms, &room).add(number, event, Instant::now());
        self.send_ready(&mut rooms, &room);
    }

    /// Under the lock, so that the events reach the sockets in this order.
    fn send_ready(&self, rooms: &mut HashMap<String, RoomOrder>, room: &str) {
        let Some(order) = rooms.get_mut(room) else {
            return;
        };
        let is_alone = self.room_events.is_alone();
        for event in order.take_ready(is_alone, Instant::now()) {
            self.room_events.emit_frames_change(&event);
        }
        if order.is_idle() && is_alone {
            // No other event can come late.
            rooms.remove(room);
        } else if !order.waiting.is_empty() && !std::mem::replace(&mut order.has_timer, true) {
            self.send_later(room.to_owned());
        }
    }

    fn send_later(&self, room: String) {
        // A ticket may be dropped while the process ends.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let this = self.clone();
        runtime.spawn(async move {
            tokio::time::sleep(GAP_PATIENCE).await;
            let mut rooms = this.lock();
            if let Some(order) = rooms.get_mut(&room) {
                order.has_timer = false;
            }
            this.send_ready(&mut rooms, &room);
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, RoomOrder>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn order_of<'a>(rooms: &'a mut HashMap<String, RoomOrder>, room: &str) -> &'a mut RoomOrder {
    if rooms.len() >= IDLE_ROOMS && !rooms.contains_key(room) {
        rooms.retain(|_, order| !order.is_idle());
    }
    rooms.entry(room.to_owned()).or_default()
}

impl ChangeTicket {
    /// The write has committed the change of this number.
    pub(super) fn committed(self, number: i64, event: FramesChange) {
        self.events.room_events.send_frames_change(number, &event);
        let mut rooms = self.events.lock();
        if let Some(order) = rooms.get_mut(&self.room) {
            order.add(number, event, Instant::now());
        }
        // The drop sends it.
    }
}

impl Drop for ChangeTicket {
    /// Also of a write that has changed nothing, or has failed.
    fn drop(&mut self) {
        let mut rooms = self.events.lock();
        if let Some(order) = rooms.get_mut(&self.room) {
            order.under_way.remove(&self.ticket);
        }
        self.events.send_ready(&mut rooms, &self.room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(count: i64) -> FramesChange {
        FramesChange {
            room_id: "room".to_owned(),
            action: "add".to_owned(),
            indices: None,
            count: Some(count),
            reason: None,
        }
    }

    fn counts(order: &mut RoomOrder, is_alone: bool, now: Instant) -> Vec<Option<i64>> {
        let ready = order.take_ready(is_alone, now);
        ready.into_iter().map(|event| event.count).collect()
    }

    #[test]
    fn an_event_waits_for_the_writes_that_began_before_it() {
        let (mut order, now) = (RoomOrder::default(), Instant::now());
        let (first, second) = (order.begin(), order.begin());
        order.add(2, event(20), now);
        order.under_way.remove(&second);
        assert_eq!(counts(&mut order, true, now), []);
        // A write that began later has a higher number.
        let third = order.begin();
        order.add(1, event(10), now);
        order.under_way.remove(&first);
        assert_eq!(counts(&mut order, true, now), [Some(10), Some(20)]);
        order.add(3, event(30), now);
        order.under_way.remove(&third);
        assert_eq!(counts(&mut order, true, now), [Some(30)]);
    }

    #[test]
    fn a_write_that_fails_holds_up_no_event() {
        let (mut order, now) = (RoomOrder::default(), Instant::now());
        let (failed, second) = (order.begin(), order.begin());
        order.add(7, event(1), now);
        order.under_way.remove(&second);
        assert_eq!(counts(&mut order, true, now), []);
        order.under_way.remove(&failed);
        assert_eq!(counts(&mut order, true, now), [Some(1)]);
    }

    #[test]
    fn the_event_of_another_node_is_waited_for() {
        let (mut order, now) = (RoomOrder::default(), Instant::now());
        order.add(1, event(1), now);
        assert_eq!(counts(&mut order, false, now), [Some(1)]);
        order.add(3, event(3), now);
        assert_eq!(counts(&mut order, false, now), []);
        order.add(2, event(2), now);
        assert_eq!(counts(&mut order, false, now), [Some(2), Some(3)]);
    }

    #[test]
    fn an_event_that_comes_too_late_brings_no_old_count() {
        let (mut order, now) = (RoomOrder::default(), Instant::now());
        order.add(1, event(1), now);
        order.add(3, event(3), now);
        assert_eq!(counts(&mut order, false, now), [Some(1)]);
        assert_eq!(counts(&mut order, false, now + GAP_PATIENCE), [Some(3)]);
        order.add(2, event(2), now);
        assert_eq!(counts(&mut order, false, now), [Some(3)]);
    }
}
