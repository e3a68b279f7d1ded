//! The readers of this node, by their requests.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use uuid::Uuid;
use wakeline_bus::{Bus, Wakes, Write};

use super::{Jobs, reads::RequestKey};
use crate::{frames::GroupAbandoned, provider::AnswerKey};

/// So that of a hundred readers only one sends the request, and the last one that hangs up releases
/// the lock.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<HashMap<RequestKey, Reader>>);

#[derive(Debug, Default)]
struct Reader {
    count: usize,
    is_sending: bool,
    inflight_lock: Option<(AnswerKey, Uuid)>,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, Reader>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the caller is the one that sends the request.
    fn try_start_sending(&self, request_key: &RequestKey) -> bool {
        match self.lock().get_mut(request_key) {
            Some(reader) => !std::mem::replace(&mut reader.is_sending, true),
            None => false,
        }
    }

    /// Whether any reader still waits.
    fn finish_sending(
        &self,
        request_key: &RequestKey,
        inflight_lock: Option<(AnswerKey, Uuid)>,
    ) -> bool {
        match self.lock().get_mut(request_key) {
            Some(reader) => {
                reader.is_sending = false;
                if inflight_lock.is_some() {
                    reader.inflight_lock = inflight_lock;
                }
                true
            }
            None => false,
        }
    }
}

/// Sends a request for all its readers. It goes with the write that sets the lock. If it is dropped
/// before that write has returned, because the write failed or panicked, it lets the next reader
/// send the request, and releases the lock that may be set.
pub(super) struct RequestSender {
    door: Arc<Jobs>,
    request_key: RequestKey,
    inflight_lock: Option<(AnswerKey, Uuid)>,
}

impl RequestSender {
    /// `None`: another reader sends the request.
    pub(super) fn enter(
        door: &Arc<Jobs>,
        request_key: &RequestKey,
        inflight_lock: (AnswerKey, Uuid),
    ) -> Option<Self> {
        let try_start_sending = door.reads.readers.try_start_sending(request_key);
        try_start_sending.then(|| Self {
            door: door.clone(),
            request_key: request_key.clone(),
            inflight_lock: Some(inflight_lock),
        })
    }

    /// Whether a reader still waits.
    pub(super) fn finish(mut self, is_locked: bool) -> bool {
        let inflight_lock = self.inflight_lock.take().filter(|_| is_locked);
        self.door
            .reads
            .readers
            .finish_sending(&self.request_key, inflight_lock)
    }
}

impl Drop for RequestSender {
    fn drop(&mut self) {
        let Some((key, token)) = self.inflight_lock.take() else {
            return;
        };
        self.door
            .reads
            .readers
            .finish_sending(&self.request_key, None);
        // No reader is woken: a request that fails at once again would loop.
        let unmark = self
            .door
            .unmark(&self.request_key, key, token, Wakes::none());
        commit_detached(unmark, &self.door.bus);
    }
}

/// One reader. If it is dropped before its read has ended, the reader has hung up.
pub(super) struct ReaderGuard {
    door: Arc<Jobs>,
    request_key: RequestKey,
    group: GroupAbandoned,
    is_disarmed: bool,
}

impl ReaderGuard {
    pub(super) fn enter(door: &Arc<Jobs>, request_key: &RequestKey, group: GroupAbandoned) -> Self {
        let mut readers = door.reads.readers.lock();
        readers.entry(request_key.clone()).or_default().count += 1;
        drop(readers);
        Self {
            door: door.clone(),
            request_key: request_key.clone(),
            group,
            is_disarmed: false,
        }
    }

    pub(super) fn disarm(mut self) {
        self.is_disarmed = true;
    }
}

impl Drop for ReaderGuard {
    fn drop(&mut self) {
        let mut readers = self.door.reads.readers.lock();
        let Some(reader) = readers.get_mut(&self.request_key) else {
            return;
        };
        reader.count -= 1;
        if reader.count > 0 {
            return;
        }
        let inflight_lock = readers
            .remove(&self.request_key)
            .and_then(|reader| reader.inflight_lock);
        drop(readers);
        if let Some((key, token)) = inflight_lock
            && !self.is_disarmed
            && !self.group.is_abandoned()
        {
            let unask = self.door.unask(&self.request_key, key, token);
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
            tracing::debug!(%error, "the lock on a request stays until it expires");
        }
    });
}
