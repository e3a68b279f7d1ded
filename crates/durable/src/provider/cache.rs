//! Histories in memory.
//!
//! A history is only appended to, under the lease on its instance. An entry has a version; the
//! database returns the current version in the same answer for which the entry is used. If they are
//! equal, the entry is the history.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use duroxide::Event;

/// Identifies a history and its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HistoryVersion {
    /// Tells the instance from a deleted one of the same id.
    pub(crate) incarnation: i64,
    pub(crate) execution: i64,
    /// The number of its last event.
    pub(crate) last_event: i64,
    /// How often it was edited by hand.
    pub(crate) edits: i64,
}

/// What a turn does to the cached history of its instance.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CacheUpdate {
    /// The turn's events are the whole history, at this version.
    Put(HistoryVersion),
    /// The turn's events follow the history at version `before`.
    Append {
        before: HistoryVersion,
        after: HistoryVersion,
    },
    Evict,
}

#[derive(Debug)]
struct Entry {
    version: HistoryVersion,
    events: Arc<Vec<Event>>,
    bytes: usize,
    used: u64,
}

#[derive(Debug)]
pub(crate) struct HistoryCache {
    limit: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<String, Entry>,
    /// By the time of their last use.
    order: BTreeMap<u64, String>,
    bytes: usize,
    clock: u64,
}

impl HistoryCache {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            inner: Mutex::default(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version that is cached of `instance`.
    pub(crate) fn version(&self, instance: &str) -> Option<HistoryVersion> {
        self.lock().entries.get(instance).map(|entry| entry.version)
    }

    /// The events of exactly this version.
    pub(crate) fn get(&self, instance: &str, version: HistoryVersion) -> Option<Vec<Event>> {
        let mut inner = self.lock();
        let entry = inner.entries.get(instance)?;
        if entry.version != version {
            return None;
        }
        let events = entry.events.clone();
        inner.touch(instance);
        drop(inner);
        // The lock is released: a long history takes a while to copy.
        Some(Arc::unwrap_or_clone(events))
    }

    pub(crate) fn update(
        &self,
        instance: &str,
        update: CacheUpdate,
        events: Vec<Event>,
        bytes: usize,
    ) {
        match update {
            CacheUpdate::Put(version) => self.put(instance, version, events, bytes),
            CacheUpdate::Append { before, after } => {
                self.append(instance, before, after, events, bytes);
            }
            CacheUpdate::Evict => self.evict(instance),
        }
    }

    pub(crate) fn put(
        &self,
        instance: &str,
        version: HistoryVersion,
        events: Vec<Event>,
        bytes: usize,
    ) {
        // A history that fills most of the memory would evict all others.
        if bytes > self.limit / 4 {
            self.evict(instance);
            return;
        }
        let mut inner = self.lock();
        inner.remove(instance);
        inner.bytes += bytes;
        inner.clock += 1;
        let used = inner.clock;
        inner.order.insert(used, instance.to_owned());
        inner.entries.insert(
            instance.to_owned(),
            Entry {
                version,
                events: Arc::new(events),
                bytes,
                used,
            },
        );
        inner.shrink(self.limit);
    }

    /// Appends `events` to the history at version `before`, which gets version `after`.
    pub(crate) fn append(
        &self,
        instance: &str,
        before: HistoryVersion,
        after: HistoryVersion,
        events: Vec<Event>,
        bytes: usize,
    ) {
        let mut inner = self.lock();
        let Some(entry) = inner.entries.get_mut(instance) else {
            return;
        };
        if entry.version != before || entry.bytes + bytes > self.limit / 4 {
            inner.remove(instance);
            return;
        }
        entry.version = after;
        Arc::make_mut(&mut entry.events).extend(events);
        entry.bytes += bytes;
        inner.bytes += bytes;
        inner.touch(instance);
        inner.shrink(self.limit);
    }

    pub(crate) fn evict(&self, instance: &str) {
        self.lock().remove(instance);
    }
}

impl Inner {
    fn touch(&mut self, instance: &str) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(entry) = self.entries.get_mut(instance)
            && let Some(name) = self.order.remove(&entry.used)
        {
            entry.used = clock;
            self.order.insert(clock, name);
        }
    }

    fn remove(&mut self, instance: &str) {
        if let Some(entry) = self.entries.remove(instance) {
            self.order.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }

    fn shrink(&mut self, limit: usize) {
        while self.bytes > limit
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: HistoryVersion = HistoryVersion {
        incarnation: 1,
        execution: 1,
        last_event: 1,
        edits: 0,
    };

    fn event(number: u64) -> Event {
        let kind = duroxide::EventKind::OrchestrationCompleted { output: "".into() };
        Event::with_event_id(number, "i", 1, None, kind)
    }

    #[test]
    fn a_history_is_returned_only_at_its_exact_version() {
        let cache = HistoryCache::new(1_000);
        cache.put("i", FIRST, vec![event(1)], 10);
        assert_eq!(cache.get("i", FIRST).map(|events| events.len()), Some(1));
        let edited = HistoryVersion { edits: 1, ..FIRST };
        assert!(cache.get("i", edited).is_none());
        let later = HistoryVersion {
            last_event: 2,
            ..FIRST
        };
        cache.append("i", FIRST, later, vec![event(2)], 10);
        assert!(cache.get("i", FIRST).is_none());
        assert_eq!(cache.get("i", later).map(|events| events.len()), Some(2));
        // Events that do not follow evict the history.
        cache.append("i", FIRST, later, vec![event(3)], 10);
        assert!(cache.version("i").is_none());
    }

    #[test]
    fn the_history_that_was_not_used_longest_is_evicted_first() {
        let cache = HistoryCache::new(100);
        for name in ["a", "b", "c", "d"] {
            cache.put(name, FIRST, vec![event(1)], 25);
        }
        assert!(cache.get("a", FIRST).is_some());
        cache.put("e", FIRST, vec![event(1)], 25);
        assert!(cache.get("b", FIRST).is_none());
        assert!(cache.get("a", FIRST).is_some());
        cache.put("f", FIRST, vec![event(1)], 26);
        assert!(cache.version("f").is_none(), "too large for its share");
    }
}
