//! Memory for uploads.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// The unit of the semaphore, which counts to four billion at least, but not in bytes.
const STEP: u64 = 1_024;

/// Bytes for all uploads together. First come, first served, so that small uploads do not pass a
/// large one for ever.
#[derive(Clone)]
pub struct UploadMemory {
    steps: Arc<Semaphore>,
    all: u32,
}

/// Returned when it is dropped.
pub(crate) type MemoryPermit = OwnedSemaphorePermit;

impl fmt::Debug for UploadMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("UploadMemory")
            .field("free", &self.free())
            .finish_non_exhaustive()
    }
}

impl UploadMemory {
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let all = steps(bytes).max(1);
        Self {
            steps: Arc::new(Semaphore::new(all as usize)),
            all,
        }
    }

    /// Free bytes.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.steps.available_permits() as u64 * STEP
    }

    /// Memory for so many bytes; for more than there are, all of it. `None`: not within `patience`.
    pub(crate) async fn acquire(&self, bytes: u64, patience: Duration) -> Option<MemoryPermit> {
        let wanted = steps(bytes).min(self.all);
        let lending = self.steps.clone().acquire_many_owned(wanted);
        timeout(patience, lending).await.ok()?.ok()
    }
}

fn steps(bytes: u64) -> u32 {
    // As many as a semaphore of tokio's takes on every machine.
    const MOST: u32 = u32::MAX >> 3;
    u32::try_from(bytes.div_ceil(STEP))
        .unwrap_or(MOST)
        .min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn acquired_memory_is_not_free_until_it_is_released() {
        let memory = UploadMemory::new(10 * STEP);
        let first = memory.acquire(4 * STEP + 1, LONG).await.unwrap();
        assert_eq!(memory.free(), 5 * STEP);
        assert!(memory.acquire(6 * STEP, NOW).await.is_none());
        let second = memory.acquire(5 * STEP, LONG).await.unwrap();
        let waiting = tokio::spawn({
            let memory = memory.clone();
            async move { memory.acquire(u64::MAX, LONG).await.is_some() }
        });
        drop((first, second));
        assert!(
            waiting.await.unwrap(),
            "an upload larger than the memory gets all of it"
        );
        assert_eq!(memory.free(), 10 * STEP);
    }
}
