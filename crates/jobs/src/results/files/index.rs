//! Which files there are, how much space they take, and which is removed first. In memory only: it
//! can be rebuilt from the directory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::name::FileName;

/// The unit of space on disk.
const BLOCK: u64 = 4_096;

#[derive(Debug)]
pub(super) struct FileIndex {
    cap: u64,
    /// Of the stored and the incoming files.
    taken: u64,
    files: HashMap<FileName, Entry>,
    by_use: BTreeMap<u64, FileName>,
    by_end: BTreeSet<(i64, FileName)>,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    size: u64,
    used: u64,
    expires_at: i64,
    is_sound: bool,
}

impl FileIndex {
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

    /// The space that so many bytes take.
    pub(super) fn size(bytes: u64) -> u64 {
        bytes.max(1).next_multiple_of(BLOCK)
    }

    /// Reserves space for an incoming file.
    pub(super) fn take(&mut self, size: u64) {
        self.taken += size;
    }

    pub(super) fn give_back(&mut self, size: u64) {
        self.taken -= size;
    }

    /// Adds a file that was just written or read. `is_sound`: its bytes are known to be what was
    /// written.
    pub(super) fn place(&mut self, name: FileName, bytes: u64, expires_at: i64, is_sound: bool) {
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

    pub(super) fn remove(&mut self, name: &FileName) {
        if let Some(entry) = self.files.remove(name) {
            self.taken -= entry.size;
            self.by_use.remove(&entry.used);
            self.by_end.remove(&(entry.expires_at, *name));
        }
    }

    pub(super) fn contains(&self, name: &FileName) -> bool {
        self.files.contains_key(name)
    }

    pub(super) fn is_sound(&self, name: &FileName) -> bool {
        self.files.get(name).is_some_and(|entry| entry.is_sound)
    }

    pub(super) fn names(&self) -> Vec<FileName> {
        self.files.keys().copied().collect()
    }

    pub(super) fn is_over_full(&self) -> bool {
        self.taken > self.cap
    }

    /// The file that was read longest ago.
    pub(super) fn stalest(&self) -> Option<FileName> {
        self.by_use.values().next().copied()
    }

    pub(super) fn first_to_end(&self) -> Option<(i64, FileName)> {
        self.by_end.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::provider::AnswerKey;

    fn name(hash: &str) -> FileName {
        FileName::of(&AnswerKey {
            provider: Uuid::nil(),
            version: 1,
            hash: hash.to_owned(),
        })
    }

    #[test]
    fn the_file_read_last_is_removed_last() {
        let mut index = FileIndex::new(2 * BLOCK);
        index.place(name("a"), 1, 0, true);
        index.place(name("b"), 1, 0, true);
        assert!(!index.is_over_full());
        index.place(name("c"), 1, 0, true);
        index.place(name("a"), 1, 0, true);
        assert!(index.is_over_full());
        let mut order = Vec::new();
        while let Some(stalest) = index.stalest() {
            index.remove(&stalest);
            order.push(stalest);
        }
        assert_eq!(order, [name("b"), name("c"), name("a")]);
    }

    #[test]
    fn removed_files_take_no_space() {
        let mut index = FileIndex::new(BLOCK);
        for bytes in [0, 1, BLOCK, BLOCK + 1] {
            index.place(name("a"), bytes, i64::try_from(bytes).unwrap(), true);
        }
        assert_eq!(index.taken, 2 * BLOCK);
        index.take(BLOCK);
        index.give_back(BLOCK);
        index.remove(&name("a"));
        index.remove(&name("a"));
        assert_eq!(index.taken, 0);
        assert!(index.by_use.is_empty() && index.by_end.is_empty());
    }

    #[test]
    fn the_file_that_expires_first_is_returned_first() {
        let mut index = FileIndex::new(BLOCK);
        index.place(name("late"), 1, 30, true);
        index.place(name("early"), 1, 10, false);
        assert_eq!(index.first_to_end(), Some((10, name("early"))));
        assert!(!index.is_sound(&name("early")));
        index.place(name("early"), 1, 40, true);
        assert_eq!(index.first_to_end(), Some((30, name("late"))));
        assert!(index.is_sound(&name("early")));
    }
}
