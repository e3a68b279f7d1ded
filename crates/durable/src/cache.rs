//! Histories in memory.
//!
//! A history is only ever appended to, under the lease on its instance. An entry says of which
//! incarnation and execution it is, up to which event, and at which edit by hand; the database names
//! the same four in the answer that the entry is used for. Where they agree the entry is the history.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use duroxide::Event;

/// Which state of which history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edition {
    pub(crate) incarnation: i64,
    pub(crate) execution: i64,
    pub(crate) last: i64,
    pub(crate) edits: i64,
}

#[derive(Debug)]
struct Entry {
    edition: Edition,
    events: Arc<Vec<Event>>,
    bytes: usize,
    used: u64,
}

#[derive(Debug)]
pub(crate) struct Cache {
    limit: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<String, Entry>,
    /// By when they were last used.
    order: BTreeMap<u64, String>,
    bytes: usize,
    clock: u64,
}

impl Cache {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            inner: Mutex::default(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of `instance`, for the question to the database.
    pub(crate) fn edition(&self, instance: &str) -> Option<Edition> {
        self.lock().entries.get(instance).map(|entry| entry.edition)
    }

    /// The events of exactly this edition.
    pub(crate) fn get(&self, instance: &str, edition: Edition) -> Option<Vec<Event>> {
        let mut inner = self.lock();
        let entry = inner.entries.get(instance)?;
        if entry.edition != edition {
            return None;
        }
        let events = entry.events.clone();
        inner.touch(instance);
        drop(inner);
        // A long history is copied while others go on.
        Some(Arc::unwrap_or_clone(events))
    }

    pub(crate) fn put(&self, instance: &str, edition: Edition, events: Vec<Event>, bytes: usize) {
        // A history that fills most of the memory would only drive out all others.
        if bytes > self.limit / 4 {
            self.forget(instance);
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
                edition,
                events: Arc::new(events),
                bytes,
                used,
            },
        );
        inner.shrink(self.limit);
    }

    /// `events` were appended to what was at `before`; it is then at `after`.
    pub(crate) fn append(
        &self,
        instance: &str,
        before: Edition,
        after: Edition,
        events: Vec<Event>,
        bytes: usize,
    ) {
        let mut inner = self.lock();
        let Some(entry) = inner.entries.get_mut(instance) else {
            return;
        };
        if entry.edition != before || entry.bytes + bytes > self.limit / 4 {
            inner.remove(instance);
            return;
        }
        entry.edition = after;
        Arc::make_mut(&mut entry.events).extend(events);
        entry.bytes += bytes;
        inner.bytes += bytes;
        inner.touch(instance);
        inner.shrink(self.limit);
    }

    pub(crate) fn forget(&self, instance: &str) {
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

    const FIRST: Edition = Edition {
        incarnation: 1,
        execution: 1,
        last: 1,
        edits: 0,
    };

    fn event(number: u64) -> Event {
        let kind = duroxide::EventKind::OrchestrationCompleted { output: "".into() };
        Event::with_event_id(number, "i", 1, None, kind)
    }

    #[test]
    fn only_the_very_edition_is_given() {
        let cache = Cache::new(1_000);
        cache.put("i", FIRST, vec![event(1)], 10);
        assert_eq!(cache.get("i", FIRST).map(|events| events.len()), Some(1));
        let edited = Edition { edits: 1, ..FIRST };
        assert!(cache.get("i", edited).is_none());
        let later = Edition { last: 2, ..FIRST };
        cache.append("i", FIRST, later, vec![event(2)], 10);
        assert!(cache.get("i", FIRST).is_none());
        assert_eq!(cache.get("i", later).map(|events| events.len()), Some(2));
        // What does not follow is forgotten.
        cache.append("i", FIRST, later, vec![event(3)], 10);
        assert!(cache.edition("i").is_none());
    }

    #[test]
    fn what_was_not_used_longest_goes_first() {
        let cache = Cache::new(100);
        for name in ["a", "b", "c", "d"] {
            cache.put(name, FIRST, vec![event(1)], 25);
        }
        assert!(cache.get("a", FIRST).is_some());
        cache.put("e", FIRST, vec![event(1)], 25);
        assert!(cache.get("b", FIRST).is_none());
        assert!(cache.get("a", FIRST).is_some());
        cache.put("f", FIRST, vec![event(1)], 26);
        assert!(cache.edition("f").is_none(), "too large for its share");
    }
}
