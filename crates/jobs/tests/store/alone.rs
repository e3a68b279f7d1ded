//! For tests of a part by itself, where nobody waits.

use std::sync::Arc;

use wakeline_bus::{Bus, Write};
use wakeline_store::Error;
use wakeline_wake::{Engine, Limits};

/// Of a process that is the only one.
pub(crate) fn bus() -> Arc<Bus> {
    Bus::local(Engine::new(Limits::default()))
}

pub(crate) trait CommitAlone<T> {
    fn commit_alone(self) -> impl Future<Output = Result<T, Error>> + Send;
}

impl<T: Send + 'static> CommitAlone<T> for Write<T> {
    fn commit_alone(self) -> impl Future<Output = Result<T, Error>> + Send {
        self.commit(&bus())
    }
}
