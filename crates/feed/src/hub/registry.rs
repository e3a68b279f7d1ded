//! The open streams, by query and givens.

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
    concern::{ConcernLookup, QueryConcerns},
};
use crate::{
    bookmark::Bookmark,
    fact::{Kind, Reference},
    pages::Page,
    query::Query,
    store::{Concern, Log, LogEntry, Seq},
    topic,
    waitlist::{ReadyPage, Waitlist},
};

type StreamId = u64;

/// Where the follower puts what a stream has to read.
#[derive(Debug)]
pub struct StreamInbox {
    waitlist: Mutex<Waitlist>,
    is_overrun: AtomicBool,
}

impl StreamInbox {
    pub fn waitlist(&self) -> MutexGuard<'_, Waitlist> {
        self.waitlist.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// More facts came than may wait.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        self.is_overrun.load(Ordering::Relaxed)
    }

    fn add(&self, fact: Seq, to: Seq) {
        if !self.waitlist().add(fact, to) {
            self.is_overrun.store(true, Ordering::Relaxed);
        }
    }
}

/// Facts that a stream wants to be woken for.
#[derive(Clone, Debug)]
pub struct Watch {
    pub query: Arc<Query>,
    /// The seqs of the givens.
    pub given: Vec<Seq>,
    /// Whether a tuple changes what the feed depends on, such as the caller's admission, instead of
    /// being a tuple of the feed.
    pub is_dependency: bool,
}

#[derive(Debug, Default)]
pub(super) struct Registry {
    streams: HashMap<StreamId, StreamEntry>,
    last: StreamId,
    by_query: HashMap<Arc<Query>, QueryStreams>,
    /// The variables that a fact of a type can stand for, by query.
    by_kind: HashMap<Kind, Vec<(Arc<Query>, usize)>>,
    /// Streams that wait until one of their givens is stored.
    unresolved: HashMap<Reference, HashSet<StreamId>>,
}

#[derive(Debug)]
struct StreamEntry {
    topic: Topic,
    inbox: Arc<StreamInbox>,
    watches: Vec<Watch>,
    unresolved: Vec<Reference>,
}

/// The streams of one query, by their givens.
#[derive(Debug, Default)]
struct QueryStreams {
    by_given: HashMap<Vec<Seq>, HashMap<StreamId, bool>>,
}

impl Registry {
    pub(super) fn open(&mut self, topic: Topic, cap: usize) -> (StreamId, Arc<StreamInbox>) {
        self.last += 1;
        let inbox = Arc::new(StreamInbox {
            waitlist: Mutex::new(Waitlist::new(cap)),
            is_overrun: AtomicBool::new(false),
        });
        let stream = StreamEntry {
            topic,
            inbox: inbox.clone(),
            watches: Vec::new(),
            unresolved: Vec::new(),
        };
        self.streams.insert(self.last, stream);
        (self.last, inbox)
    }

    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    fn watch(&mut self, id: StreamId, watches: Vec<Watch>, unresolved: Vec<Reference>) {
        self.forget(id);
        for reference in &unresolved {
            self.unresolved
                .entry(reference.clone())
                .or_default()
                .insert(id);
        }
        for watch in &watches {
            if !self.by_query.contains_key(&watch.query) {
                for (kind, variable) in arrivals_by_kind(&watch.query) {
                    let known = self.by_kind.entry(kind).or_default();
                    known.push((watch.query.clone(), variable));
                }
            }
            let streams_of_query = self.by_query.entry(watch.query.clone()).or_default();
            let streams = streams_of_query
                .by_given
                .entry(watch.given.clone())
                .or_default();
            // A fact may be both a tuple and a dependency: then the feed is read from its
            // beginning.
            *streams.entry(id).or_default() |= watch.is_dependency;
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.watches = watches;
            stream.unresolved = unresolved;
        }
    }

    /// Undoes `watch`.
    fn forget(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let (watches, unresolved) = (
            std::mem::take(&mut stream.watches),
            std::mem::take(&mut stream.unresolved),
        );
        for reference in unresolved {
            if let Some(streams) = self.unresolved.get_mut(&reference) {
                streams.remove(&id);
                if streams.is_empty() {
                    self.unresolved.remove(&reference);
                }
            }
        }
        for watch in watches {
            let Some(streams_of_query) = self.by_query.get_mut(&watch.query) else {
                continue;
            };
            if let Some(streams) = streams_of_query.by_given.get_mut(&watch.given) {
                streams.remove(&id);
                if streams.is_empty() {
                    streams_of_query.by_given.remove(&watch.given);
                }
            }
            if streams_of_query.by_given.is_empty() {
                self.by_query.remove(&watch.query);
                for (kind, _) in arrivals_by_kind(&watch.query) {
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

    /// The look-ups that these facts need.
    pub(super) fn lookups(&self, entries: &[LogEntry]) -> Vec<ConcernLookup> {
        let mut by_kind: HashMap<&Kind, Vec<&LogEntry>> = HashMap::new();
        for entry in entries {
            if self.by_kind.contains_key(&entry.reference.kind) {
                by_kind
                    .entry(&entry.reference.kind)
                    .or_default()
                    .push(entry);
            }
        }
        let mut lookups = Vec::new();
        for (kind, entries) in by_kind {
            for (query, variable) in &self.by_kind[kind] {
                if let Some(QueryStreams { by_given }) = self.by_query.get(query) {
                    lookups.push(ConcernLookup::new(
                        query.clone(),
                        *variable,
                        &entries,
                        by_given,
                    ));
                }
            }
        }
        lookups
    }

    /// The givens that streams of a query wait with.
    pub(super) fn watched(&self, query: &Query) -> Vec<Vec<Seq>> {
        let streams_of_query = self.by_query.get(query);
        streams_of_query.map_or_else(Vec::new, |streams_of_query| {
            streams_of_query.by_given.keys().cloned().collect()
        })
    }

    /// Puts facts on the waitlists of the streams that they concern; returns which topics to wake.
    pub(super) fn deliver(&self, log: &Log, found: Vec<QueryConcerns>) -> HashSet<Topic> {
        let mut topics = HashSet::new();
        let mut tell = |id: &StreamId, fact: Seq, is_dependency: bool| {
            if let Some(stream) = self.streams.get(id) {
                if is_dependency {
                    stream.inbox.waitlist().restart(log.to);
                } else {
                    stream.inbox.add(fact, log.to);
                }
                topics.insert(stream.topic.clone());
            }
        };
        for entry in &log.entries {
            for id in self.unresolved.get(&entry.reference).into_iter().flatten() {
                tell(id, entry.seq, true);
            }
        }
        for found in found {
            let Some(streams_of_query) = self.by_query.get(&found.query) else {
                continue;
            };
            if found.is_page {
                self.deliver_pages(streams_of_query, log, &found.concerns);
            }
            let concerns = found.concerns;
            for concern in concerns {
                let exact: Option<Vec<Seq>> = concern.given.iter().copied().collect();
                if let Some(given) = exact {
                    for (id, is_dependency) in
                        streams_of_query.by_given.get(&given).into_iter().flatten()
                    {
                        tell(id, concern.fact, *is_dependency);
                    }
                    continue;
                }
                for (given, streams) in &streams_of_query.by_given {
                    let mut pairs = concern.given.iter().zip(given);
                    if pairs.all(|(found, given)| found.is_none_or(|found| found == *given)) {
                        for (id, is_dependency) in streams {
                            tell(id, concern.fact, *is_dependency);
                        }
                    }
                }
            }
        }
        topics
    }

    /// Gives streams the page that they would read, so that they need not ask the store.
    fn deliver_pages(&self, streams_of_query: &QueryStreams, log: &Log, concerns: &[Concern]) {
        let mut brought: HashMap<Vec<Seq>, Vec<Seq>> = HashMap::new();
        for concern in concerns {
            let given: Option<Vec<Seq>> = concern.given.iter().copied().collect();
            if let Some(given) = given.filter(|given| streams_of_query.by_given.contains_key(given))
            {
                brought.entry(given).or_default().push(concern.fact);
            }
        }
        for (given, mut facts) in brought {
            // A fact may have the same predecessor twice.
            facts.dedup();
            let Some(&first) = facts.first() else {
                continue;
            };
            let reference = |fact: &Seq| {
                let at = |entry: &LogEntry| entry.seq.cmp(fact);
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
            for (id, is_dependency) in &streams_of_query.by_given[&given] {
                if let Some(stream) = self.streams.get(id).filter(|_| !is_dependency) {
                    stream.inbox.waitlist().set_ready_page(ReadyPage {
                        after: log.after,
                        first,
                        page: page.clone(),
                    });
                }
            }
        }
    }

    /// Every stream reads everything after `after`.
    pub(super) fn deliver_span(&self, after: Seq, to: Seq) -> HashSet<Topic> {
        for stream in self.streams.values() {
            stream.inbox.add(after + 1, to);
        }
        self.streams
            .values()
            .map(|stream| stream.topic.clone())
            .collect()
    }
}

/// The variables that a new fact can stand for. Not the givens: a stream waits for those by
/// reference.
fn arrivals_by_kind(query: &Query) -> Vec<(Kind, usize)> {
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
    inbox: Arc<StreamInbox>,
}

impl Registration {
    pub(super) fn new(hub: Arc<Hub>, stream: StreamId, inbox: Arc<StreamInbox>) -> Self {
        Self { hub, stream, inbox }
    }

    /// From here on the stream gets facts for these watches, and no longer for those of the last
    /// call. Earlier facts are in the store: read it after this call.
    pub fn watch(&self, watches: Vec<Watch>, unresolved: Vec<Reference>) {
        self.hub.registry().watch(self.stream, watches, unresolved);
    }

    #[must_use]
    pub fn inbox(&self) -> &StreamInbox {
        &self.inbox
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut registry = self.hub.registry();
        registry.close(self.stream);
        let is_last = registry.len() == 0;
        drop(registry);
        if is_last {
            // The follower waits for this, too: it ends.
            let wake = Wake::all(topic::log());
            self.hub.engine.wake(&wake, Cause::Notify);
        }
    }
}
