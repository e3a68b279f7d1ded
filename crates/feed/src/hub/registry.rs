//! The open streams, by what they look for.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use wakeline_wake::{Cause, Topic, Wake};

use super::{
    Hub,
    concern::{Found, Task},
};
use crate::{
    bookmark::Bookmark,
    fact::{Kind, Reference},
    pages::Page,
    query::Query,
    store::{Concern, Log, LogEntry, Position},
    topic,
    waitlist::{Known, Waitlist},
};

type StreamId = u64;

/// What the follower and a stream share.
#[derive(Debug)]
pub struct Signal {
    waitlist: Mutex<Waitlist>,
    is_overrun: AtomicBool,
}

impl Signal {
    pub fn waitlist(&self) -> MutexGuard<'_, Waitlist> {
        self.waitlist.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// More came than may wait.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        self.is_overrun.load(Ordering::Relaxed)
    }

    fn add(&self, fact: Position, to: Position) {
        if !self.waitlist().add(fact, to) {
            self.is_overrun.store(true, Ordering::Relaxed);
        }
    }
}

/// What a stream wants to hear of.
#[derive(Clone, Debug)]
pub struct Watch {
    pub query: Arc<Query>,
    /// Where the givens are.
    pub given: Vec<Position>,
    /// Whether a tuple here changes what the stream stands on, instead of being one of it.
    pub is_ground: bool,
}

#[derive(Debug, Default)]
pub(super) struct Registry {
    streams: HashMap<StreamId, Stream>,
    last: StreamId,
    shapes: HashMap<Arc<Query>, Shape>,
    /// Where in which query a fact of a type can stand.
    by_kind: HashMap<Kind, Vec<(Arc<Query>, usize)>>,
    /// Who waits for a fact that its feed begins with.
    anchors: HashMap<Reference, HashSet<StreamId>>,
}

#[derive(Debug)]
struct Stream {
    topic: Topic,
    signal: Arc<Signal>,
    watches: Vec<Watch>,
    anchors: Vec<Reference>,
}

/// The streams of one query, by their givens.
#[derive(Debug, Default)]
struct Shape {
    by_given: HashMap<Vec<Position>, HashMap<StreamId, bool>>,
}

impl Registry {
    pub(super) fn open(&mut self, topic: Topic, cap: usize) -> (StreamId, Arc<Signal>) {
        self.last += 1;
        let signal = Arc::new(Signal {
            waitlist: Mutex::new(Waitlist::new(cap)),
            is_overrun: AtomicBool::new(false),
        });
        let stream = Stream {
            topic,
            signal: signal.clone(),
            watches: Vec::new(),
            anchors: Vec::new(),
        };
        self.streams.insert(self.last, stream);
        (self.last, signal)
    }

    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    fn watch(&mut self, id: StreamId, watches: Vec<Watch>, anchors: Vec<Reference>) {
        self.forget(id);
        for anchor in &anchors {
            self.anchors.entry(anchor.clone()).or_default().insert(id);
        }
        for watch in &watches {
            if !self.shapes.contains_key(&watch.query) {
                for (kind, variable) in places(&watch.query) {
                    let known = self.by_kind.entry(kind).or_default();
                    known.push((watch.query.clone(), variable));
                }
            }
            let shape = self.shapes.entry(watch.query.clone()).or_default();
            let streams = shape.by_given.entry(watch.given.clone()).or_default();
            // A feed may stand on what is also in it: then the ground decides.
            *streams.entry(id).or_default() |= watch.is_ground;
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.watches = watches;
            stream.anchors = anchors;
        }
    }

    /// Takes back what `watch` said.
    fn forget(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let (watches, anchors) = (
            std::mem::take(&mut stream.watches),
            std::mem::take(&mut stream.anchors),
        );
        for anchor in anchors {
            if let Some(streams) = self.anchors.get_mut(&anchor) {
                streams.remove(&id);
                if streams.is_empty() {
                    self.anchors.remove(&anchor);
                }
            }
        }
        for watch in watches {
            let Some(shape) = self.shapes.get_mut(&watch.query) else {
                continue;
            };
            if let Some(streams) = shape.by_given.get_mut(&watch.given) {
                streams.remove(&id);
                if streams.is_empty() {
                    shape.by_given.remove(&watch.given);
                }
            }
            if shape.by_given.is_empty() {
                self.shapes.remove(&watch.query);
                for (kind, _) in places(&watch.query) {
                    if let Some(known) = self.by_kind.get_mut(&kind) {
                        known.retain(|(query, _)| *query != watch.query);
                        if known.is_empty() {
                            self.by_kind.remove(&kind);
                        }
                    }
                }
            }
        }
    }

    fn close(&mut self, id: StreamId) {
        self.forget(id);
        self.streams.remove(&id);
    }

    /// What has to be found out about these facts.
    pub(super) fn tasks(&self, entries: &[LogEntry]) -> Vec<Task> {
        let mut by_kind: HashMap<&Kind, Vec<&LogEntry>> = HashMap::new();
        for entry in entries {
            if self.by_kind.contains_key(&entry.reference.kind) {
                by_kind
                    .entry(&entry.reference.kind)
                    .or_default()
                    .push(entry);
            }
        }
        let mut tasks = Vec::new();
        for (kind, entries) in by_kind {
            for (query, variable) in &self.by_kind[kind] {
                if let Some(Shape { by_given }) = self.shapes.get(query) {
                    tasks.push(Task::new(query.clone(), *variable, &entries, by_given));
                }
            }
        }
        tasks
    }

    /// The givens that somebody waits with.
    pub(super) fn watched(&self, query: &Query) -> Vec<Vec<Position>> {
        let shape = self.shapes.get(query);
        shape.map_or_else(Vec::new, |shape| shape.by_given.keys().cloned().collect())
    }

    /// Puts the facts on the waitlists of those whom they concern; returns which topics to wake.
    pub(super) fn tell(&self, log: &Log, found: Vec<Found>) -> HashSet<Topic> {
        let mut topics = HashSet::new();
        let mut tell = |id: &StreamId, fact: Position, is_ground: bool| {
            if let Some(stream) = self.streams.get(id) {
                if is_ground {
                    stream.signal.waitlist().begin_anew(log.to);
                } else {
                    stream.signal.add(fact, log.to);
                }
                topics.insert(stream.topic.clone());
            }
        };
        for entry in &log.entries {
            for id in self.anchors.get(&entry.reference).into_iter().flatten() {
                tell(id, entry.position, true);
            }
        }
        for found in found {
            let Some(shape) = self.shapes.get(&found.query) else {
                continue;
            };
            if found.is_whole {
                self.know(shape, log, &found.concerns);
            }
            let concerns = found.concerns;
            for concern in concerns {
                let exact: Option<Vec<Position>> = concern.given.iter().copied().collect();
                if let Some(given) = exact {
                    for (id, is_ground) in shape.by_given.get(&given).into_iter().flatten() {
                        tell(id, concern.fact, *is_ground);
                    }
                    continue;
                }
                for (given, streams) in &shape.by_given {
                    let mut pairs = concern.given.iter().zip(given);
                    if pairs.all(|(found, given)| found.is_none_or(|found| found == *given)) {
                        for (id, is_ground) in streams {
                            tell(id, concern.fact, *is_ground);
                        }
                    }
                }
            }
        }
        topics
    }

    /// Tells streams what they would find, so that they need not look.
    fn know(&self, shape: &Shape, log: &Log, concerns: &[Concern]) {
        let mut brought: HashMap<Vec<Position>, Vec<Position>> = HashMap::new();
        for concern in concerns {
            let given: Option<Vec<Position>> = concern.given.iter().copied().collect();
            if let Some(given) = given.filter(|given| shape.by_given.contains_key(given)) {
                brought.entry(given).or_default().push(concern.fact);
            }
        }
        for (given, mut facts) in brought {
            // A fact may have the same predecessor twice.
            facts.dedup();
            let Some(&first) = facts.first() else {
                continue;
            };
            let reference = |fact: &Position| {
                let at = |entry: &LogEntry| entry.position.cmp(fact);
                let place = log.entries.binary_search_by(at).ok()?;
                Some(log.entries[place].reference.clone())
            };
            let Some(references) = facts.iter().map(reference).collect() else {
                continue;
            };
            let page = Arc::new(Page {
                references,
                tuples: facts.len(),
                reached: Bookmark::Finished(log.to),
                is_last: true,
            });
            for (id, is_ground) in &shape.by_given[&given] {
                if let Some(stream) = self.streams.get(id).filter(|_| !is_ground) {
                    stream.signal.waitlist().know(Known {
                        after: log.after,
                        first,
                        page: page.clone(),
                    });
                }
            }
        }
    }

    /// Everybody looks at everything after `after`.
    pub(super) fn tell_all(&self, after: Position, to: Position) -> HashSet<Topic> {
        for stream in self.streams.values() {
            stream.signal.add(after + 1, to);
        }
        self.streams
            .values()
            .map(|stream| stream.topic.clone())
            .collect()
    }
}

/// Where new facts can stand in a query. A given that arrives is an anchor.
fn places(query: &Query) -> Vec<(Kind, usize)> {
    let arrivals = query.arrivals().into_iter();
    let arrivals = arrivals.filter(|variable| *variable >= query.givens);
    arrivals
        .map(|variable| (query.variables[variable].clone(), variable))
        .collect()
}

/// A stream's place in the hub. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Registration {
    hub: Arc<Hub>,
    stream: StreamId,
    signal: Arc<Signal>,
}

impl Registration {
    pub(super) fn new(hub: Arc<Hub>, stream: StreamId, signal: Arc<Signal>) -> Self {
        Self {
            hub,
            stream,
            signal,
        }
    }

    /// From here on it hears of these, instead of what it was told to hear before. What came before
    /// is in the store: look after this.
    pub fn watch(&self, watches: Vec<Watch>, anchors: Vec<Reference>) {
        self.hub.registry().watch(self.stream, watches, anchors);
    }

    #[must_use]
    pub fn signal(&self) -> &Signal {
        &self.signal
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut registry = self.hub.registry();
        registry.close(self.stream);
        let is_last = registry.len() == 0;
        drop(registry);
        if is_last {
            // The follower waits for this too: it ends.
            let wake = Wake::all(topic::log());
            self.hub.engine.wake(&wake, Cause::Notify);
        }
    }
}
