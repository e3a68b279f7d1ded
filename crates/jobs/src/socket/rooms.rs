//! The members of rooms: rules only, without sockets or locks.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use socketioxide::socket::Sid;

/// Rooms that one socket may be in.
pub const MAX_ROOMS: usize = 1_000;

pub(super) struct Rooms<M> {
    members: HashMap<Sid, Member<M>>,
    rooms: HashMap<Arc<str>, HashSet<Sid>>,
}

struct Member<M> {
    is: M,
    rooms: HashSet<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinOutcome {
    Now,
    Already,
    /// It is in as many rooms as it may be.
    TooMany,
    /// It is not connected, or no more.
    Gone,
}

impl<M> Default for Rooms<M> {
    fn default() -> Self {
        Self {
            members: HashMap::new(),
            rooms: HashMap::new(),
        }
    }
}

impl<M> Rooms<M> {
    pub(super) fn enter(&mut self, id: Sid, is: M) {
        let rooms = HashSet::new();
        self.members.insert(id, Member { is, rooms });
    }

    pub(super) fn join(&mut self, id: Sid, room: &str) -> JoinOutcome {
        let Some(member) = self.members.get_mut(&id) else {
            return JoinOutcome::Gone;
        };
        if member.rooms.contains(room) {
            return JoinOutcome::Already;
        }
        if member.rooms.len() >= MAX_ROOMS {
            return JoinOutcome::TooMany;
        }
        let room: Arc<str> = room.into();
        self.rooms.entry(room.clone()).or_default().insert(id);
        member.rooms.insert(room);
        JoinOutcome::Now
    }

    /// Removes a member. Whether it was there and the room is empty now.
    pub(super) fn leave(&mut self, id: Sid, room: &str) -> bool {
        let member = self.members.get_mut(&id);
        member.is_some_and(|member| member.rooms.remove(room)) && self.depart(id, room)
    }

    /// Removes a client. Returns the rooms that are empty now.
    pub(super) fn remove(&mut self, id: Sid) -> Vec<Arc<str>> {
        let member = self.members.remove(&id);
        let rooms = member.into_iter().flat_map(|member| member.rooms);
        rooms.filter(|room| self.depart(id, room)).collect()
    }

    /// All rooms that there were.
    pub(super) fn clear(&mut self) -> Vec<Arc<str>> {
        self.members.clear();
        self.rooms.drain().map(|(room, _)| room).collect()
    }

    fn depart(&mut self, id: Sid, room: &str) -> bool {
        let Some(there) = self.rooms.get_mut(room) else {
            return false;
        };
        there.remove(&id);
        let empty = there.is_empty();
        if empty {
            self.rooms.remove(room);
        }
        empty
    }

    pub(super) fn member(&self, id: Sid) -> Option<&M> {
        self.members.get(&id).map(|member| &member.is)
    }

    pub(super) fn members(&self, room: &str) -> impl Iterator<Item = (Sid, &M)> {
        let there = self.rooms.get(room).into_iter().flatten();
        there.filter_map(|id| Some((*id, self.member(*id)?)))
    }

    pub(super) fn count(&self, room: &str) -> usize {
        self.rooms.get(room).map_or(0, HashSet::len)
    }

    pub(super) fn connected(&self) -> usize {
        self.members.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_in(room: &str) -> (Rooms<()>, Sid, Sid) {
        let mut rooms = Rooms::default();
        let (one, other) = (Sid::new(), Sid::new());
        for id in [one, other] {
            rooms.enter(id, ());
            assert_eq!(rooms.join(id, room), JoinOutcome::Now);
        }
        (rooms, one, other)
    }

    #[test]
    fn only_the_last_leave_empties_the_room() {
        let (mut rooms, one, other) = two_in("a");
        assert!(!rooms.leave(one, "a"));
        assert!(!rooms.leave(one, "a"), "it was not there any more");
        assert!(rooms.leave(other, "a"));
        assert_eq!(rooms.count("a"), 0);
    }

    #[test]
    fn a_removed_session_leaves_all_its_rooms() {
        let (mut rooms, one, other) = two_in("a");
        rooms.join(one, "b");
        assert_eq!(rooms.remove(one), [Arc::<str>::from("b")]);
        assert_eq!(
            rooms.members("a").map(|(id, ())| id).collect::<Vec<_>>(),
            [other]
        );
        assert!(rooms.remove(one).is_empty());
        assert_eq!(rooms.connected(), 1);
    }

    #[test]
    fn a_removed_session_joins_no_room() {
        let (mut rooms, one, _) = two_in("a");
        rooms.remove(one);
        assert_eq!(rooms.join(one, "b"), JoinOutcome::Gone);
        assert_eq!(rooms.count("b"), 0);
    }

    #[test]
    fn a_session_joins_at_most_the_allowed_number_of_rooms() {
        let mut rooms = Rooms::default();
        let id = Sid::new();
        rooms.enter(id, ());
        for number in 0..MAX_ROOMS {
            assert_eq!(rooms.join(id, &number.to_string()), JoinOutcome::Now);
        }
        assert_eq!(rooms.join(id, "0"), JoinOutcome::Already);
        assert_eq!(rooms.join(id, "one more"), JoinOutcome::TooMany);
        rooms.leave(id, "0");
        assert_eq!(rooms.join(id, "one more"), JoinOutcome::Now);
    }
}
