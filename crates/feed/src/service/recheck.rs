//! The door's question to its store: has something been saved that the follower has not read?

use std::time::Duration;

use futures_util::{FutureExt, future::BoxFuture};
use wakeline_bus::{DueWake, Recheck};
use wakeline_store::Error;
use wakeline_wake::WaitedKey;

use super::Feeds;
use crate::{DOOR, topic};

impl Recheck for Feeds {
    fn door(&self) -> &'static str {
        DOOR
    }

    /// One statement, however many streams wait: the follower wakes them.
    fn recheck(&self, _: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        async move {
            let Some(at) = self.services.follower.at() else {
                return Ok(Vec::new());
            };
            let horizon = self.store.horizon().await?;
            let due = DueWake {
                key: topic::key(topic::log()),
                after: Duration::ZERO,
            };
            Ok(if horizon.last > at {
                vec![due]
            } else {
                Vec::new()
            })
        }
        .boxed()
    }
}
