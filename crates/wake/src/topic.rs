//! What waiters wait for ([`Topic`], [`WaitGroup`]) and what wakes them ([`Wake`]).

use std::{fmt, sync::Arc, time::Duration};

/// Between the parts of a topic. No part contains it, so two different lists of parts never make
/// the same topic.
const SEPARATOR: char = '\0';

/// What a waiter waits for: a door's name and the door's own parts, such as `queue/orders`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Topic(Arc<str>);

impl Topic {
    /// A topic of `door`. NUL in a part is replaced, because it separates the parts.
    #[must_use]
    pub fn new<'a>(door: &str, parts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut text = door.to_owned();
        for part in parts {
            text.push(SEPARATOR);
            if part.contains(SEPARATOR) {
                text.push_str(&part.replace(SEPARATOR, "\u{fffd}"));
            } else {
                text.push_str(part);
            }
        }
        Self(text.into())
    }

    /// The topic whose [`Topic::encoded`] form is `text`.
    #[must_use]
    pub fn from_encoded(text: &str) -> Self {
        Self(text.into())
    }

    /// The form that travels between processes.
    #[must_use]
    pub fn encoded(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn door(&self) -> &str {
        self.0.split(SEPARATOR).next().unwrap_or_default()
    }

    /// The parts after the door.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split(SEPARATOR).skip(1)
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A slash within a part is escaped, so that two topics never look the same.
        for (index, part) in self.0.split(SEPARATOR).enumerate() {
            if index > 0 {
                out.write_str("/")?;
            }
            out.write_str(&part.replace('%', "%25").replace('/', "%2F"))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Topic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Which waiters of a topic compete. Waiters of one group compete for what a wake announces; groups
/// do not: a wake for `n` wakes `n` in each group. A consumer group is a wait group.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WaitGroup(Arc<str>);

impl WaitGroup {
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Default for WaitGroup {
    fn default() -> Self {
        Self::new("")
    }
}

impl fmt::Debug for WaitGroup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

/// What a waiter is registered at: a topic and a wait group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WaitKey {
    pub topic: Topic,
    pub group: WaitGroup,
}

impl WaitKey {
    #[must_use]
    pub fn new(topic: Topic, group: WaitGroup) -> Self {
        Self { topic, group }
    }
}

/// How many of the waiters are woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WakeMode {
    /// All of them: a result, a new state, a feed.
    All,
    /// The `n` of each group that have waited longest: `n` items arrived.
    Count(u32),
    /// The one of each group that has waited longest. If it finds work, it wakes the next one before
    /// it starts. For when it is not known how much arrived.
    Chain,
}

/// Something may be there for the waiters at any of `topics`. The topics are alternatives for the
/// same item: the wake goes to the longest waiter of all of them, not to one of each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wake {
    pub topics: Arc<[Topic]>,
    /// `None`: every group.
    pub group: Option<WaitGroup>,
    pub mode: WakeMode,
}

impl Wake {
    #[must_use]
    pub fn all(topic: Topic) -> Self {
        Self {
            topics: Arc::new([topic]),
            group: None,
            mode: WakeMode::All,
        }
    }

    #[must_use]
    pub fn count(topics: impl Into<Arc<[Topic]>>, count: u32) -> Self {
        Self {
            topics: topics.into(),
            group: None,
            mode: WakeMode::Count(count),
        }
    }

    #[must_use]
    pub fn chain(topic: Topic) -> Self {
        Self {
            topics: Arc::new([topic]),
            group: None,
            mode: WakeMode::Chain,
        }
    }

    #[must_use]
    pub fn in_group(mut self, group: WaitGroup) -> Self {
        self.group = Some(group);
        self
    }
}

/// What made a wake happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Published after a write, in this process or over the bus.
    Notify,
    /// A timer was due.
    Timer,
    /// A recheck of the whole door found it: at the fallback interval, after a reconnect of the bus, or
    /// because a write asked for it.
    Fallback,
}

impl Cause {
    pub const ALL: [Self; 3] = [Self::Notify, Self::Timer, Self::Fallback];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Notify => "notify",
            Self::Timer => "timer",
            Self::Fallback => "fallback",
        }
    }
}

/// A point in time: microseconds since the engine began. The state machine reads no clock; its
/// caller passes the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineTime(pub u64);

impl EngineTime {
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// How long ago `earlier` was; zero if it is still to come.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}
