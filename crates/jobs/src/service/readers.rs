//! Who reads what on this node.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use uuid::Uuid;

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
    pub(super) fn begins(&self, question: &Question) -> bool {
        match self.lock().get_mut(question) {
            Some(reader) => !std::mem::replace(&mut reader.is_beginning, true),
            None => false,
        }
    }

    /// Whether anybody still wants to know.
    pub(super) fn begun(&self, question: &Question, mark: Option<(Key, Uuid)>) -> bool {
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
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (door, question) = (self.door.clone(), self.question.clone());
            runtime.spawn(async move { door.unask(&question, key, token).await });
        }
    }
}
