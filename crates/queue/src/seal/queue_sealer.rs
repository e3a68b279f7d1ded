//! The server's keys, and the queues that are known to keep their messages sealed.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Fingerprint, Sealer};
use crate::message::NewMessage;

/// Names of sealed queues that are remembered; past it all are forgotten.
const MAX_QUEUES: usize = 10_000;

/// The names are a hint that saves a refused attempt.
#[derive(Debug)]
pub(crate) struct QueueSealer {
    sealer: Sealer,
    fingerprints: Arc<[Fingerprint]>,
    queues: Mutex<HashSet<String>>,
}

impl QueueSealer {
    pub(crate) fn new(sealer: Sealer) -> Self {
        Self {
            fingerprints: sealer.fingerprints().into(),
            sealer,
            queues: Mutex::default(),
        }
    }

    pub(crate) fn key(&self) -> &Sealer {
        &self.sealer
    }

    pub(crate) fn fingerprints(&self) -> Arc<[Fingerprint]> {
        self.fingerprints.clone()
    }

    /// Seals the messages to queues that are known to be sealed.
    pub(crate) fn seal_known(&self, messages: &mut [NewMessage]) {
        let to_seal: Vec<usize> = {
            let queues = self.queues();
            let known = |index: &usize| queues.contains(&messages[*index].queue);
            (0..messages.len()).filter(known).collect()
        };
        for index in to_seal {
            self.seal(&mut messages[index]);
        }
    }

    /// Seals messages that their queues refused unsealed, and remembers the queues.
    pub(crate) fn seal_refused(&self, messages: &mut [NewMessage]) {
        {
            let mut queues = self.queues();
            if queues.len() >= MAX_QUEUES {
                queues.clear();
            }
            queues.extend(messages.iter().map(|message| message.queue.clone()));
        }
        for message in messages {
            self.seal(message);
        }
    }

    /// The queue may not be sealed any more.
    pub(crate) fn forget(&self, queue: &str) {
        self.queues().remove(queue);
    }

    fn seal(&self, message: &mut NewMessage) {
        if !message.is_sealed {
            message.payload = self.sealer.seal(&message.payload).into();
            message.is_sealed = true;
        }
    }

    fn queues(&self) -> MutexGuard<'_, HashSet<String>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
