//! The recheck: which of the waiting requests can be answered.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use wakeline_bus::{DueWake, Recheck};
use wakeline_store::Error;
use wakeline_wake::WaitedKey;

use super::Jobs;
use crate::{
    name::FullName,
    results::ReadyCheck,
    topic::{DOOR, Wait},
};

impl Recheck for Jobs {
    fn door(&self) -> &'static str {
        DOOR
    }

    /// One statement for tasks and claims; for reads and providers one, and one for each backend of
    /// answers.
    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        async move {
            let waits: Vec<Wait> = waiting
                .iter()
                .filter_map(|waiting| Wait::read(&waiting.topic))
                .collect();
            let (stored, asked): (Vec<Wait>, Vec<Wait>) = waits
                .into_iter()
                .partition(|wait| matches!(wait, Wait::Claim(_) | Wait::Worker(_) | Wait::Task(_)));
            let mut ready = if stored.is_empty() {
                Vec::new()
            } else {
                self.store.ready(stored).await?
            };
            ready.extend(self.answerable(asked).await?);
            let due = |wait: &Wait| DueWake {
                key: wait.key(),
                after: Duration::ZERO,
            };
            Ok(ready.iter().map(due).collect())
        }
        .boxed()
    }
}

impl Jobs {
    /// Reads that have an answer or whose request was not sent, and dispatchers of providers with
    /// open requests, which check whether they have sent them.
    async fn answerable(&self, asked: Vec<Wait>) -> Result<Vec<Wait>, Error> {
        let mut names: Vec<FullName> = asked
            .iter()
            .filter_map(|wait| match wait {
                Wait::Result(name, _) | Wait::Requests(name) => Some(name.clone()),
                _ => None,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let found = self.store.find_providers(names.clone()).await?;
        let known: HashMap<FullName, _> = names
            .into_iter()
            .zip(found)
            .filter_map(|(name, provider)| Some((name, provider?)))
            .collect();
        let mut ready = Vec::new();
        for key in self.results.backends() {
            let (mut waits, mut at) = (Vec::new(), Vec::new());
            for wait in &asked {
                let (name, hash) = match wait {
                    Wait::Result(name, hash) => (name, Some(hash.clone())),
                    Wait::Requests(name) => (name, None),
                    _ => continue,
                };
                if let Some(provider) = known.get(name)
                    && Arc::ptr_eq(self.results.of(&name.category), &key)
                {
                    waits.push(wait.clone());
                    at.push(ReadyCheck {
                        provider: provider.id,
                        version: provider.version,
                        hash,
                    });
                }
            }
            if at.is_empty() {
                continue;
            }
            let is_ready = key.are_ready(at).await?;
            let those = waits.into_iter().zip(is_ready);
            ready.extend(those.filter_map(|(wait, is_ready)| is_ready.then_some(wait)));
        }
        Ok(ready)
    }
}
