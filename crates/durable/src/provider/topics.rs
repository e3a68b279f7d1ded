//! The topics that dispatchers and clients wait for.

use duroxide::providers::{DispatcherCapabilityFilter, SessionFetchConfig, TagFilter};
use wakeline_wake::{Topic, WaitGroup, WaitKey, Wake};

use crate::bus::{self, ORCHESTRATION};

/// In place of a tag: every tag.
pub(crate) const ANY: &str = "*";
/// The kinds of topics, beside [`ORCHESTRATION`].
pub(crate) const ACTIVITY: &str = "activity";
pub(crate) const SESSION_ACTIVITY: &str = "session";
pub(crate) const OWNER: &str = "owner";
pub(crate) const INSTANCE: &str = "instance";
/// Nothing is published here: waiters that can fetch the same items share a recheck timer.
const RECHECK: &str = "recheck";

/// The topics of one schema.
#[derive(Clone, Debug)]
pub(crate) struct Topics {
    schema: String,
}

/// The properties of an activity that decide which workers can fetch it.
#[derive(Clone, Debug)]
pub(crate) struct ActivityKind {
    pub(crate) tag: String,
    pub(crate) has_session: bool,
    /// The worker that has the session.
    pub(crate) owner: Option<String>,
}

impl Topics {
    pub(crate) fn new(schema: &str) -> Self {
        Self {
            schema: schema.to_owned(),
        }
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    fn topic(&self, kind: &str, name: &str) -> Topic {
        bus::topic(&self.schema, kind, name)
    }

    pub(crate) fn orchestration(&self) -> Topic {
        self.topic(ORCHESTRATION, "")
    }

    pub(crate) fn instance(&self, instance: &str) -> Topic {
        self.topic(INSTANCE, instance)
    }

    /// The wait key of a dispatcher of orchestrations. Dispatchers with different filters are
    /// different wait groups: an item that one cannot fetch another may.
    pub(crate) fn orchestration_key(&self, filter: Option<&DispatcherCapabilityFilter>) -> WaitKey {
        let versions = filter
            .and_then(|filter| filter.supported_duroxide_versions.first())
            .map_or_else(String::new, |range| format!("{}-{}", range.min, range.max));
        WaitKey::new(self.orchestration(), WaitGroup::new(&versions))
    }

    /// The wait keys of a worker: one for each kind of activity that it can fetch. The last two are for
    /// its recheck timer: one that it shares with all workers of the same tags, and one that it shares
    /// with those of the same session owner.
    pub(crate) fn activity_keys(
        &self,
        session: Option<&SessionFetchConfig>,
        tags: &[String],
    ) -> Vec<WaitKey> {
        let any = [ANY.to_owned()];
        let names = if tags.is_empty() { &any[..] } else { tags };
        let owner = session.map_or("", |session| &session.owner_id);
        let mut topics: Vec<Topic> = names.iter().map(|tag| self.topic(ACTIVITY, tag)).collect();
        if session.is_some() {
            topics.extend(names.iter().map(|tag| self.topic(SESSION_ACTIVITY, tag)));
            topics.push(self.topic(OWNER, owner));
        }
        let tags = names.join("\u{1}");
        topics.push(self.topic(RECHECK, &format!("{}\u{1}{tags}", session.is_some())));
        topics.push(self.topic(RECHECK, &format!("{owner}\u{1}\u{1}{tags}")));
        topics
            .into_iter()
            .map(|topic| WaitKey::new(topic, WaitGroup::default()))
            .collect()
    }

    pub(crate) fn wake_orchestrations(&self, count: u32) -> Wake {
        bus::wake_orchestrations(&self.schema, count)
    }

    /// Wakes as many workers as there are activities, among those that can fetch them.
    pub(crate) fn wake_activities(&self, kind: &ActivityKind, count: u32) -> Wake {
        let name = match (&kind.owner, kind.has_session) {
            (Some(owner), true) => return Wake::all(self.topic(OWNER, owner)),
            (None, true) => SESSION_ACTIVITY,
            (_, false) => ACTIVITY,
        };
        let topics = [self.topic(name, &kind.tag), self.topic(name, ANY)];
        Wake::count(topics, count)
    }

    /// Wakes a worker that can have the session of `kind` when its owner has lost it.
    pub(crate) fn wake_session_takeover(&self, kind: &ActivityKind) -> Wake {
        let topics = [
            self.topic(SESSION_ACTIVITY, &kind.tag),
            self.topic(SESSION_ACTIVITY, ANY),
        ];
        Wake::count(topics, 1)
    }

    /// The name of the topic that [`Self::wake_session_takeover`] wakes.
    pub(crate) fn session_takeover(&self, kind: &ActivityKind) -> String {
        self.topic(SESSION_ACTIVITY, &kind.tag)
            .encoded()
            .to_string()
    }

    pub(crate) fn wake_instance(&self, instance: &str) -> Wake {
        Wake::all(self.instance(instance))
    }
}

/// A filter's tags as they are stored; an empty list is every tag.
pub(crate) fn stored_tags(filter: &TagFilter) -> Vec<String> {
    let (default, tags) = match filter {
        TagFilter::DefaultOnly => return vec![String::new()],
        TagFilter::Any | TagFilter::None => return Vec::new(),
        TagFilter::Tags(tags) => (None, tags),
        TagFilter::DefaultAnd(tags) => (Some(String::new()), tags),
    };
    let mut stored: Vec<String> = default
        .into_iter()
        .chain(tags.iter().map(|tag| stored_tag(Some(tag))))
        .collect();
    stored.sort_unstable();
    stored
}

/// A tag as it is stored: empty for no tag, else `=` and the tag.
pub(crate) fn stored_tag(tag: Option<&str>) -> String {
    tag.map_or_else(String::new, |tag| format!("={tag}"))
}
