//! Memory for request bodies: so much for all together, and of it so much for one caller.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use axum::body::Bytes;
use http::Extensions;
use http_body::SizeHint;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{access::Identity, body::Limits, caller_key::CallerKey, problem::Problem};

/// Of the process, as memory is.
static MEMORY: OnceLock<Arc<BodyMemory>> = OnceLock::new();
/// What is counted.
const UNIT: usize = 1 << 10;
/// Shorter bodies need no share of the memory: their connections cost as much.
const SMALL_BODY: usize = 16 << 10;

/// Sets how much memory bodies may take together (`limits.body_memory`), and those of one caller
/// (`limits.body_memory_per_caller`). The first call counts.
pub fn set_body_memory(bytes: usize, per_caller: usize) {
    MEMORY.get_or_init(|| BodyMemory::new(bytes, per_caller));
}

/// Takes a body's share of the memory while the body is read: before its first byte, or, where its
/// length is not known, as soon as it is no short one.
#[derive(Debug)]
pub struct BodyMeter<'a> {
    /// Of the request.
    extensions: &'a Extensions,
    /// The longest that it can be.
    length: usize,
    share: Option<BodyShare>,
}

impl<'a> BodyMeter<'a> {
    pub async fn begin(
        extensions: &'a Extensions,
        length: SizeHint,
        max: usize,
    ) -> Result<Self, Problem> {
        let known = length.upper().map(|length| {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            length.min(max)
        });
        Ok(Self {
            extensions,
            length: max,
            share: body_share(extensions, known.unwrap_or_default()).await?,
        })
    }

    /// Before more than a short body's bytes are kept.
    pub async fn received(&mut self, bytes: usize) -> Result<(), Problem> {
        if bytes > SMALL_BODY && self.share.is_none() {
            self.share = body_share(self.extensions, self.length).await?;
        }
        Ok(())
    }

    /// The body as it was read. The share is given back when the last copy of it is dropped.
    #[must_use]
    pub fn end(self, bytes: Bytes) -> Bytes {
        match self.share {
            Some(share) => Bytes::from_owner(SharedBody(bytes, share)),
            None => bytes,
        }
    }
}

struct SharedBody(Bytes, #[allow(dead_code, reason = "held")] BodyShare);

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The caller's share first, then that of all. Both are waited for, together as long as a client may
/// pause. `None`: the body needs none.
async fn body_share(extensions: &Extensions, length: usize) -> Result<Option<BodyShare>, Problem> {
    let memory = match MEMORY.get() {
        Some(memory) if length > SMALL_BODY => memory,
        _ => return Ok(None),
    };
    let limits: Limits = extensions.get().copied().unwrap_or_default();
    let identity: Option<&Identity> = extensions.get();
    let subject = identity.and_then(|identity| identity.subject.clone());
    let address = limits.limited_address.map(CallerKey::of_address);
    let callers = address.into_iter().chain(subject.map(CallerKey::Subject));
    let share = memory.take(callers, length, limits.body_timeout).await?;
    Ok(Some(share))
}

#[derive(Debug)]
struct BodyMemory {
    free: Arc<Semaphore>,
    /// Of all.
    units: u32,
    units_per_caller: u32,
    /// What each caller has left, of those that read bodies now.
    callers: Mutex<HashMap<CallerKey, Arc<Semaphore>>>,
}

/// A body's part of the memory, until it is dropped.
#[derive(Debug)]
struct BodyShare {
    _of_callers: Vec<CallerMemory>,
    _of_all: OwnedSemaphorePermit,
}

impl BodyMemory {
    fn new(bytes: usize, per_caller: usize) -> Arc<Self> {
        let units = |bytes: usize| u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        Arc::new(Self {
            free: Arc::new(Semaphore::new(units(bytes) as usize)),
            units: units(bytes),
            units_per_caller: units(per_caller.min(bytes)),
            callers: Mutex::default(),
        })
    }

    /// A body that is longer than a whole memory takes all of it, so that it can be read at all.
    async fn take(
        self: &Arc<Self>,
        callers: impl Iterator<Item = CallerKey>,
        length: usize,
        patience: Duration,
    ) -> Result<BodyShare, Problem> {
        let deadline = Instant::now() + patience;
        let units = u32::try_from(length / UNIT).unwrap_or(u32::MAX);
        let mut of_callers = Vec::new();
        // Before the share of all: who waits for a share of its own takes nothing from others.
        for key in callers {
            let mut memory = CallerMemory::of(self, key);
            let taking = memory.free.clone();
            let taking = taking.acquire_many_owned(units.min(self.units_per_caller));
            let taken = timeout_at(deadline, taking).await;
            memory.taken = taken.map_err(|_| too_much_of(&memory.key))?.ok();
            of_callers.push(memory);
        }
        let taking = self.free.clone().acquire_many_owned(units.min(self.units));
        match timeout_at(deadline, taking).await {
            Ok(Ok(of_all)) => Ok(BodyShare {
                _of_callers: of_callers,
                _of_all: of_all,
            }),
            Ok(Err(_)) => unreachable!("the semaphore is never closed"),
            Err(_) => Err(too_much_of_all()),
        }
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<CallerKey, Arc<Semaphore>>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one body has of its caller's memory, or waits for.
#[derive(Debug)]
struct CallerMemory {
    all: Arc<BodyMemory>,
    key: CallerKey,
    free: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl CallerMemory {
    fn of(all: &Arc<BodyMemory>, key: CallerKey) -> Self {
        let mut callers = all.callers();
        let free = callers
            .entry(key.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(all.units_per_caller as usize)));
        Self {
            all: all.clone(),
            free: free.clone(),
            key,
            taken: None,
        }
    }
}

impl Drop for CallerMemory {
    /// The last one of a caller leaves nothing behind.
    fn drop(&mut self) {
        drop(self.taken.take());
        let mut callers = self.all.callers();
        // Copies are made under this lock: one is the map's, one is here.
        if Arc::strong_count(&self.free) == 2 {
            callers.remove(&self.key);
        }
    }
}

fn too_much_of(caller: &CallerKey) -> Problem {
    Problem::overload(
        "body-memory",
        format!(
            "{} sends as many long request bodies at once as it may \
             (limits.body_memory_per_caller); nothing was done, try again later",
            caller.noun()
        ),
    )
}

fn too_much_of_all() -> Problem {
    Problem::unavailable(
        "body-memory",
        "too many long request bodies are being read (limits.body_memory); nothing was done, \
         try again later",
    )
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    const MIB: usize = 1 << 20;
    const NOW: Duration = Duration::ZERO;

    fn subject(name: &str) -> CallerKey {
        CallerKey::Subject(name.to_owned())
    }

    async fn take(
        memory: &Arc<BodyMemory>,
        callers: &[CallerKey],
        length: usize,
    ) -> Result<BodyShare, StatusCode> {
        let taken = memory.take(callers.iter().cloned(), length, NOW).await;
        taken.map_err(|problem| problem.status())
    }

    #[tokio::test]
    async fn a_caller_has_its_share_and_leaves_the_rest_to_others() {
        let memory = BodyMemory::new(4 * MIB, 2 * MIB);
        let (one, other) = ([subject("one")], [subject("other")]);
        let first = take(&memory, &one, MIB).await.unwrap();
        let second = take(&memory, &one, MIB).await.unwrap();
        let refused = take(&memory, &one, MIB).await.unwrap_err();
        assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS);
        // Refused by its own share, it has taken nothing of the others'.
        let others = take(&memory, &other, 2 * MIB).await.unwrap();
        let refused = take(&memory, &[subject("third")], MIB).await.unwrap_err();
        assert_eq!(refused, StatusCode::SERVICE_UNAVAILABLE);
        drop((first, others));
        let third = take(&memory, &one, MIB).await.unwrap();
        drop((second, third));
        assert!(memory.callers().is_empty());
        assert_eq!(memory.free.available_permits(), 4 << 10);
    }

    #[tokio::test]
    async fn a_body_that_is_longer_than_the_share_has_all_of_it() {
        let memory = BodyMemory::new(4 * MIB, MIB);
        let caller = [subject("one")];
        let long = take(&memory, &caller, 3 * MIB).await.unwrap();
        take(&memory, &caller, MIB).await.unwrap_err();
        assert_eq!(memory.free.available_permits(), 1 << 10);
        drop(long);
        // More than there is for all, and a share that is larger than all.
        take(&memory, &caller, 9 * MIB).await.unwrap();
        let generous = BodyMemory::new(MIB, 9 * MIB);
        take(&generous, &caller, 9 * MIB).await.unwrap();
    }

    #[tokio::test]
    async fn a_body_counts_for_its_address_and_its_subject() {
        let memory = BodyMemory::new(4 * MIB, MIB);
        let address = |text: &str| CallerKey::of_address(text.parse().unwrap());
        let both = [address("2001:db8::1"), subject("one")];
        let share = take(&memory, &both, MIB).await.unwrap();
        for caller in [subject("one"), address("2001:db8::2")] {
            take(&memory, &[caller], MIB).await.unwrap_err();
        }
        let elsewhere = [address("2001:db8:0:1::1"), subject("other")];
        take(&memory, &elsewhere, MIB).await.unwrap();
        drop(share);
        assert!(memory.callers().is_empty());
    }

    #[tokio::test]
    async fn a_body_waits_for_its_callers_share() {
        let memory = BodyMemory::new(4 * MIB, MIB);
        let share = take(&memory, &[subject("one")], MIB).await.unwrap();
        let callers = [subject("one")].into_iter();
        let mut waiting = Box::pin(memory.take(callers, MIB, Duration::from_secs(3_600)));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(share);
        waiting.await.unwrap();
        assert!(memory.callers().is_empty());
    }
}
