//! The topics of this door.

use uuid::Uuid;
use wakeline_wake::{Topic, WaitGroup, WaitKey, Wake};

use crate::name::FullName;

/// This door's name in topics, metrics and the list of waits.
pub const DOOR: &str = "jobs";

/// What a waiter at this door waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A task of the job, to be claimed.
    Claim(Uuid),
    /// Other jobs for the worker, or its end.
    Worker(Uuid),
    /// The end of the task.
    Task(Uuid),
    /// The provider's answer to the request of this hash.
    Result(FullName, String),
    /// The provider, to be registered again.
    Provider(FullName),
    /// Requests to the provider.
    Requests(FullName),
}

impl Wait {
    #[must_use]
    pub fn topic(&self) -> Topic {
        let named = |word: &str, name: &FullName| Topic::new(DOOR, [word, &name.to_string()]);
        match self {
            Self::Claim(job) => Topic::new(DOOR, ["claim", &job.to_string()]),
            Self::Worker(worker) => Topic::new(DOOR, ["worker", &worker.to_string()]),
            Self::Task(task) => Topic::new(DOOR, ["task", &task.to_string()]),
            Self::Result(name, hash) => Topic::new(DOOR, ["result", &name.to_string(), hash]),
            Self::Provider(name) => named("provider", name),
            Self::Requests(name) => named("requests", name),
        }
    }

    #[must_use]
    pub fn key(&self) -> WaitKey {
        WaitKey::new(self.topic(), WaitGroup::default())
    }

    /// Wakes all waiters of the topic.
    #[must_use]
    pub fn wake(&self) -> Wake {
        Wake::all(self.topic())
    }

    /// Wakes one of the waiters, which compete for it.
    #[must_use]
    pub fn wake_one(&self) -> Wake {
        Wake::count([self.topic()], 1)
    }

    /// Reads a topic back.
    #[must_use]
    pub fn read(topic: &Topic) -> Option<Self> {
        let parts: Vec<&str> = topic.parts().collect();
        Some(match parts.as_slice() {
            ["claim", job] => Self::Claim(job.parse().ok()?),
            ["worker", worker] => Self::Worker(worker.parse().ok()?),
            ["task", task] => Self::Task(task.parse().ok()?),
            ["result", name, hash] => Self::Result(FullName::parse(name)?, (*hash).to_owned()),
            ["provider", name] => Self::Provider(FullName::parse(name)?),
            ["requests", name] => Self::Requests(FullName::parse(name)?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_read_back() {
        let name = FullName::new("room", "filesystem", "a:b/c");
        for wait in [
            Wait::Claim(Uuid::max()),
            Wait::Worker(Uuid::max()),
            Wait::Task(Uuid::max()),
            Wait::Result(name.clone(), "44".to_owned()),
            Wait::Provider(name.clone()),
            Wait::Requests(name),
        ] {
            assert_eq!(Wait::read(&wait.topic()), Some(wait));
        }
    }
}
