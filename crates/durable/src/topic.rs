//! What dispatchers and clients wait for. A topic names the schema first: all providers of a
//! database share one line.

use duroxide::providers::{DispatcherCapabilityFilter, SessionFetchConfig, TagFilter};
use wakeline_wake::{Topic, WaitGroup, WaitKey, Wake};

pub(crate) const DOOR: &str = "durable";

/// Instead of a tag: every tag.
const ANY: &str = "*";
/// The kinds of topics.
pub(crate) const ORCHESTRATION: &str = "orchestration";
pub(crate) const TASK: &str = "task";
pub(crate) const SESSION_TASK: &str = "session";
pub(crate) const OWNER: &str = "owner";
pub(crate) const INSTANCE: &str = "instance";
/// Nobody publishes there: waiters that may take the same share an alarm.
const RECHECK: &str = "recheck";

/// The topics of one schema.
#[derive(Clone, Debug)]
pub(crate) struct Topics {
    schema: String,
}

/// New or freed activities of a kind.
#[derive(Clone, Debug)]
pub(crate) struct TaskKind {
    pub(crate) tag: String,
    pub(crate) has_session: bool,
    /// Who holds the session.
    pub(crate) owner: Option<String>,
}

impl Topics {
    pub(crate) fn new(schema: &str) -> Self {
        Self {
            schema: schema.to_owned(),
        }
    }

    fn topic(&self, kind: &str, name: &str) -> Topic {
        Topic::new(DOOR, [&*self.schema, kind, name])
    }

    pub(crate) fn orchestration(&self) -> Topic {
        self.topic(ORCHESTRATION, "")
    }

    pub(crate) fn instance(&self, instance: &str) -> Topic {
        self.topic(INSTANCE, instance)
    }

    /// Where a dispatcher of orchestrations stands. Those with different filters are not
    /// competitors: what one cannot take another may.
    pub(crate) fn orchestration_key(&self, filter: Option<&DispatcherCapabilityFilter>) -> WaitKey {
        let lane = filter
            .and_then(|filter| filter.supported_duroxide_versions.first())
            .map_or_else(String::new, |range| format!("{}-{}", range.min, range.max));
        WaitKey::new(self.orchestration(), WaitGroup::new(&lane))
    }

    /// Where a worker stands: at each kind of activity that it may take. The last two places are for
    /// its alarm: one that it shares with all who take the same tags, and one with those who hold the
    /// same sessions too.
    pub(crate) fn task_keys(
        &self,
        session: Option<&SessionFetchConfig>,
        tags: &[String],
    ) -> Vec<WaitKey> {
        let any = [ANY.to_owned()];
        let names = if tags.is_empty() { &any[..] } else { tags };
        let owner = session.map_or("", |session| &session.owner_id);
        let mut topics: Vec<Topic> = names.iter().map(|tag| self.topic(TASK, tag)).collect();
        if session.is_some() {
            topics.extend(names.iter().map(|tag| self.topic(SESSION_TASK, tag)));
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
        Wake::count([self.orchestration()], count)
    }

    /// Wakes as many workers as there are activities, among those that may take them.
    pub(crate) fn wake_tasks(&self, kind: &TaskKind, count: u32) -> Wake {
        let name = match (&kind.owner, kind.has_session) {
            (Some(owner), true) => return Wake::all(self.topic(OWNER, owner)),
            (None, true) => SESSION_TASK,
            (_, false) => TASK,
        };
        let topics = [self.topic(name, &kind.tag), self.topic(name, ANY)];
        Wake::count(topics, count)
    }

    /// Wakes one of those who may have the session of `kind` when nobody has it any more.
    pub(crate) fn wake_successor(&self, kind: &TaskKind) -> Wake {
        let topics = [
            self.topic(SESSION_TASK, &kind.tag),
            self.topic(SESSION_TASK, ANY),
        ];
        Wake::count(topics, 1)
    }

    /// Names what [`Self::wake_successor`] wakes.
    pub(crate) fn successors(&self, kind: &TaskKind) -> String {
        self.topic(SESSION_TASK, &kind.tag).encoded().to_string()
    }

    pub(crate) fn wake_instance(&self, instance: &str) -> Wake {
        Wake::all(self.instance(instance))
    }
}

/// The tags as they are stored: empty for none. No tags at all: every one.
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

pub(crate) fn stored_tag(tag: Option<&str>) -> String {
    tag.map_or_else(String::new, |tag| format!("={tag}"))
}
