//! Who reads what on this node.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use uuid::Uuid;
use wakeline_bus::{Bus, Wakes, Write};

use super::{Jobs, reads::Question};
use crate::{frames::Together, provider::Key};

/// So that of a hundred only one asks, and the last one who hangs up takes the mark along.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<HashMap<Question, Reader>>);

#[derive(Debug, Default)]
struct Reader {
    count: usize,
    is_beginning: bool,
    mark: Option<(Key, Uuid)>,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, HashMap<Question, Reader>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller is the one to ask.
    fn begins(&self, question: &Question) -> bool {
        match self.lock().get_mut(question) {
            Some(reader) => !std::mem::replace(&mut reader.is_beginning, true),
            None => false,
        }
    }

    /// Whether anybody still wants to know.
    fn begun(&self, question: &Question, mark: Option<(Key, Uuid)>) -> bool {
        match self.lock().get_mut(question) {
            Some(reader) => {
                reader.is_beginning = false;
                if mark.is_some() {
                    reader.mark = mark;
                }
                true
            }
            None => false,
        }
    }
}

/// The one that asks for all readers of a question. It goes with the write of the mark. Dropped
/// before it has heard of the mark, because the write failed or panicked, it lets the next reader
/// ask, and takes the mark off that may be there.
pub(super) struct Asker {
    door: Arc<Jobs>,
    question: Question,
    mark: Option<(Key, Uuid)>,
}

impl Asker {
    /// `None`: another one asks.
    pub(super) fn enter(door: &Arc<Jobs>, question: &Question, mark: (Key, Uuid)) -> Option<Self> {
        let begins = door.reads.readers.begins(question);
        begins.then(|| Self {
            door: door.clone(),
            question: question.clone(),
            mark: Some(mark),
        })
    }

    /// Whether anybody still wants to know.
    pub(super) fn finish(mut self, is_marked: bool) -> bool {
        let mark = self.mark.take().filter(|_| is_marked);
        self.door.reads.readers.begun(&self.question, mark)
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        let Some((key, token)) = self.mark.take() else {
            return;
        };
        self.door.reads.readers.begun(&self.question, None);
        // Nobody is woken: what fails again at once would go round and round.
        let unmark = self.door.unmark(&self.question, key, token, Wakes::none());
        commit_detached(unmark, &self.door.bus);
    }
}

/// One who reads. Dropped before its read ended, it has hung up.
pub(super) struct Reading {
    door: Arc<Jobs>,
    question: Question,
    together: Together,
    has_stayed: bool,
}

impl Reading {
    pub(super) fn enter(door: &Arc<Jobs>, question: &Question, together: Together) -> Self {
        let mut readers = door.reads.readers.lock();
        readers.entry(question.clone()).or_default().count += 1;
        drop(readers);
        Self {
            door: door.clone(),
            question: question.clone(),
            together,
            has_stayed: false,
        }
    }

    pub(super) fn stayed(mut self) {
        self.has_stayed = true;
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut readers = self.door.reads.readers.lock();
        let Some(reader) = readers.get_mut(&self.question) else {
            return;
        };
        reader.count -= 1;
        if reader.count > 0 {
            return;
        }
        let mark = readers
            .remove(&self.question)
            .and_then(|reader| reader.mark);
        drop(readers);
        if let Some((key, token)) = mark
            && !self.has_stayed
            && !self.together.has_given_up()
        {
            let unask = self.door.unask(&self.question, key, token);
            commit_detached(unask, &self.door.bus);
        }
    }
}

/// Begins a write within a `drop`, so that the end of the process waits for it.
fn commit_detached(write: Write<()>, bus: &Arc<Bus>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    let committing = write.commit(bus);
    runtime.spawn(async move {
        if let Err(error) = committing.await {
            tracing::debug!(%error, "a mark stays until its time is over");
        }
    });
}
