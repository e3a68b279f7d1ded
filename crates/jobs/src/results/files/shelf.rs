//! Which files are kept, how much space they take, and which goes first. In memory, and without a
//! file of its own: it can be rebuilt from the directory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::name::Name;

/// What a file takes up at least, and in steps of.
const BLOCK: u64 = 4_096;

#[derive(Debug)]
pub(super) struct Shelf {
    cap: u64,
    /// Of what is kept and what is coming in.
    taken: u64,
    files: HashMap<Name, Entry>,
    by_use: BTreeMap<u64, Name>,
    by_end: BTreeSet<(i64, Name)>,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    size: u64,
    used: u64,
    expires_at: i64,
    is_sound: bool,
}

impl Shelf {
    pub(super) fn new(cap: u64) -> Self {
        Self {
            cap,
            taken: 0,
            files: HashMap::new(),
            by_use: BTreeMap::new(),
            by_end: BTreeSet::new(),
            uses: 0,
        }
    }

    /// What so many bytes take up.
    pub(super) fn size(bytes: u64) -> u64 {
        bytes.max(1).next_multiple_of(BLOCK)
    }

    /// For what is coming in.
    pub(super) fn take(&mut self, size: u64) {
        self.taken += size;
    }

    pub(super) fn give_back(&mut self, size: u64) {
        self.taken -= size;
    }

    /// A file that was just written or read. `is_sound`: its bytes are known to be what was written.
    pub(super) fn place(&mut self, name: Name, bytes: u64, expires_at: i64, is_sound: bool) {
        self.remove(&name);
        self.uses += 1;
        let entry = Entry {
            size: Self::size(bytes),
            used: self.uses,
            expires_at,
            is_sound,
        };
        self.taken += entry.size;
        self.by_use.insert(entry.used, name);
        self.by_end.insert((expires_at, name));
        self.files.insert(name, entry);
    }

    pub(super) fn remove(&mut self, name: &Name) {
        if let Some(entry) = self.files.remove(name) {
            self.taken -= entry.size;
            self.by_use.remove(&entry.used);
            self.by_end.remove(&(entry.expires_at, *name));
        }
    }

    pub(super) fn contains(&self, name: &Name) -> bool {
        self.files.contains_key(name)
    }

    pub(super) fn is_sound(&self, name: &Name) -> bool {
        self.files.get(name).is_some_and(|entry| entry.is_sound)
    }

    pub(super) fn names(&self) -> Vec<Name> {
        self.files.keys().copied().collect()
    }

    pub(super) fn is_over_full(&self) -> bool {
        self.taken > self.cap
    }

    /// What was read longest ago.
    pub(super) fn stalest(&self) -> Option<Name> {
        self.by_use.values().next().copied()
    }

    pub(super) fn first_to_end(&self) -> Option<(i64, Name)> {
        self.by_end.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::provider::Key;

    fn name(hash: &str) -> Name {
        Name::of(&Key {
            provider: Uuid::nil(),
            version: 1,
            hash: hash.to_owned(),
        })
    }

    #[test]
    fn what_was_read_last_goes_last() {
        let mut shelf = Shelf::new(2 * BLOCK);
        shelf.place(name("a"), 1, 0, true);
        shelf.place(name("b"), 1, 0, true);
        assert!(!shelf.is_over_full());
        shelf.place(name("c"), 1, 0, true);
        shelf.place(name("a"), 1, 0, true);
        assert!(shelf.is_over_full());
        let mut order = Vec::new();
        while let Some(stalest) = shelf.stalest() {
            shelf.remove(&stalest);
            order.push(stalest);
        }
        assert_eq!(order, [name("b"), name("c"), name("a")]);
    }

    #[test]
    fn nothing_is_left_of_what_has_gone() {
        let mut shelf = Shelf::new(BLOCK);
        for bytes in [0, 1, BLOCK, BLOCK + 1] {
            shelf.place(name("a"), bytes, i64::try_from(bytes).unwrap(), true);
        }
        assert_eq!(shelf.taken, 2 * BLOCK);
        shelf.take(BLOCK);
        shelf.give_back(BLOCK);
        shelf.remove(&name("a"));
        shelf.remove(&name("a"));
        assert_eq!(shelf.taken, 0);
        assert!(shelf.by_use.is_empty() && shelf.by_end.is_empty());
    }

    #[test]
    fn the_first_to_end_comes_first() {
        let mut shelf = Shelf::new(BLOCK);
        shelf.place(name("late"), 1, 30, true);
        shelf.place(name("early"), 1, 10, false);
        assert_eq!(shelf.first_to_end(), Some((10, name("early"))));
        assert!(!shelf.is_sound(&name("early")));
        shelf.place(name("early"), 1, 40, true);
        assert_eq!(shelf.first_to_end(), Some((30, name("late"))));
        assert!(shelf.is_sound(&name("early")));
    }
}
