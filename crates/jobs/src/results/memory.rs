//! Memory for what answers have in hand on their way in.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// In these steps it is handed out: a semaphore counts to four billion at least, not in bytes.
const STEP: u64 = 1_024;

/// So many bytes for all of them together. First come, first served, so that a large one is not
/// passed by small ones for ever.
#[derive(Clone)]
pub struct Memory {
    steps: Arc<Semaphore>,
    all: u32,
}

/// Given back when it is dropped.
pub(crate) type Lent = OwnedSemaphorePermit;

impl fmt::Debug for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Memory")
            .field("free", &self.free())
            .finish_non_exhaustive()
    }
}

impl Memory {
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let all = steps(bytes).max(1);
        Self {
            steps: Arc::new(Semaphore::new(all as usize)),
            all,
        }
    }

    /// Bytes that nobody has.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.steps.available_permits() as u64 * STEP
    }

    /// For so many bytes; for more than there are, all of them. `None`: not within `patience`.
    pub(crate) async fn lend(&self, bytes: u64, patience: Duration) -> Option<Lent> {
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
    async fn what_is_lent_is_not_lent_twice() {
        let memory = Memory::new(10 * STEP);
        let first = memory.lend(4 * STEP + 1, LONG).await.unwrap();
        assert_eq!(memory.free(), 5 * STEP);
        assert!(memory.lend(6 * STEP, NOW).await.is_none());
        let second = memory.lend(5 * STEP, LONG).await.unwrap();
        let waiting = tokio::spawn({
            let memory = memory.clone();
            async move { memory.lend(u64::MAX, LONG).await.is_some() }
        });
        drop((first, second));
        assert!(waiting.await.unwrap(), "one that is too large has all");
        assert_eq!(memory.free(), 10 * STEP);
    }
}
