//! The places for sessions. A session is anonymous until its client has connected with a token, and
//! anonymous sessions have only a share of the places: they cost a stranger nothing.
//!
//! When that share is full, a new session takes the place of a random anonymous one. A stranger who
//! opens sessions without end then takes places mostly from itself, and a client that connects at
//! once keeps its own. Were new ones refused instead, or the oldest ones ended, a stranger or a crowd
//! that reconnects could keep every client from connecting.

use std::collections::{HashMap, HashSet};

/// Of all places, the part that anonymous sessions may have.
const ANONYMOUS_PART: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlaceId(u64);

/// `S` is what is known of an anonymous session, to end it.
#[derive(Debug)]
pub(super) struct SocketPlaces<S> {
    max: usize,
    max_anonymous: usize,
    next: u64,
    connected: HashSet<PlaceId>,
    anonymous: Vec<(PlaceId, S)>,
    /// Where each of them is in the list.
    at: HashMap<PlaceId, usize>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PlaceOutcome<S> {
    Free(PlaceId),
    /// The place of this session, which has to end.
    InsteadOf(PlaceId, S),
    /// All places have connected sessions.
    Full,
}

impl<S> SocketPlaces<S> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            // A single place is not split: any session may take it.
            max_anonymous: (max / ANONYMOUS_PART).max(1),
            next: 0,
            connected: HashSet::new(),
            anonymous: Vec::new(),
            at: HashMap::new(),
        }
    }

    /// A place for an anonymous session. `random` chooses the session that has to make room for it.
    pub(super) fn take(
        &mut self,
        session: impl FnOnce(PlaceId) -> S,
        random: impl FnOnce(usize) -> usize,
    ) -> PlaceOutcome<S> {
        let taken = self.connected.len() + self.anonymous.len();
        let is_free = taken < self.max && self.anonymous.len() < self.max_anonymous;
        if !is_free && self.anonymous.is_empty() {
            return PlaceOutcome::Full;
        }
        let ended = (!is_free).then(|| {
            let (id, _) = &self.anonymous[random(self.anonymous.len())];
            self.remove_anonymous(*id)
        });
        let id = PlaceId(self.next);
        self.next += 1;
        self.at.insert(id, self.anonymous.len());
        self.anonymous.push((id, session(id)));
        match ended.flatten() {
            Some(ended) => PlaceOutcome::InsteadOf(id, ended),
            None => PlaceOutcome::Free(id),
        }
    }

    /// The session's client has connected. Whether it still had the place.
    pub(super) fn connect(&mut self, id: PlaceId) -> bool {
        let is_anonymous = self.remove_anonymous(id).is_some();
        if is_anonymous {
            self.connected.insert(id);
        }
        is_anonymous || self.connected.contains(&id)
    }

    pub(super) fn is_connected(&self, id: PlaceId) -> bool {
        self.connected.contains(&id)
    }

    /// The session has ended.
    pub(super) fn free(&mut self, id: PlaceId) {
        if !self.connected.remove(&id) {
            self.remove_anonymous(id);
        }
    }

    fn remove_anonymous(&mut self, id: PlaceId) -> Option<S> {
        let at = self.at.remove(&id)?;
        let (_, session) = self.anonymous.swap_remove(at);
        if let Some((moved, _)) = self.anonymous.get(at) {
            self.at.insert(*moved, at);
        }
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The session's own number is what is known of it; the first in the list has to make room.
    fn take(places: &mut SocketPlaces<u64>) -> PlaceOutcome<u64> {
        places.take(|PlaceId(number)| number, |_| 0)
    }

    fn taken(places: &mut SocketPlaces<u64>) -> PlaceId {
        match take(places) {
            PlaceOutcome::Free(id) => id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn anonymous_sessions_get_at_most_half_of_the_connections() {
        let mut places = SocketPlaces::new(4);
        let (first, second) = (taken(&mut places), taken(&mut places));
        assert_eq!(take(&mut places), PlaceOutcome::InsteadOf(PlaceId(2), 0));
        assert!(!places.connect(first), "its place is another's");
        assert!(places.connect(second));
        // There is a place for an anonymous session again.
        let fourth = taken(&mut places);
        assert!(places.connect(fourth) && places.connect(PlaceId(2)));
        let fifth = taken(&mut places);
        assert!(places.connect(fifth));
        assert_eq!(take(&mut places), PlaceOutcome::Full);
        places.free(second);
        taken(&mut places);
    }

    #[test]
    fn the_end_of_a_replaced_session_frees_no_place_of_another() {
        let mut places = SocketPlaces::new(2);
        let first = taken(&mut places);
        assert_eq!(take(&mut places), PlaceOutcome::InsteadOf(PlaceId(1), 0));
        places.free(first);
        assert_eq!(take(&mut places), PlaceOutcome::InsteadOf(PlaceId(2), 1));
        assert!(places.connect(PlaceId(2)));
        taken(&mut places);
    }

    #[test]
    fn the_last_place_left_by_connected_sessions_goes_to_the_newest_anonymous_session() {
        let mut places = SocketPlaces::new(4);
        for _ in 0..3 {
            let id = taken(&mut places);
            assert!(places.connect(id));
        }
        taken(&mut places);
        assert_eq!(take(&mut places), PlaceOutcome::InsteadOf(PlaceId(4), 3));
    }

    #[test]
    fn any_anonymous_session_may_be_replaced() {
        let mut places = SocketPlaces::new(8);
        let ids: Vec<_> = (0..4).map(|_| taken(&mut places)).collect();
        let last = places.take(|PlaceId(number)| number, |count| count - 1);
        assert_eq!(last, PlaceOutcome::InsteadOf(PlaceId(4), 3));
        places.free(ids[0]);
        places.free(ids[1]);
        places.free(ids[2]);
        places.free(PlaceId(4));
        assert!(places.anonymous.is_empty() && places.at.is_empty());
        assert!(places.connected.is_empty());
    }
}
