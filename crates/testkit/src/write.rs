//! Writes of a store outside of its door, where no waiter is to be woken.

use std::sync::Arc;

use wakeline_bus::{Bus, Write};
use wakeline_store::Error;
use wakeline_wake::{Engine, Limits};

/// The bus of a process that is the only one.
#[must_use]
pub fn local_bus() -> Arc<Bus> {
    Bus::local(Engine::new(Limits::default()))
}

pub trait CommitAlone<T> {
    /// Commits on a bus of its own.
    fn commit_alone(self) -> impl Future<Output = Result<T, Error>> + Send;

    /// The same for a write that must succeed.
    fn done(self) -> impl Future<Output = T> + Send;
}

impl<T: Send + 'static> CommitAlone<T> for Write<T> {
    fn commit_alone(self) -> impl Future<Output = Result<T, Error>> + Send {
        self.commit(&local_bus())
    }

    async fn done(self) -> T {
        self.commit_alone().await.expect("the write is done")
    }
}
