//! Fetching: what a dispatcher takes, made into what the runtime works on.

use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use duroxide::{
    ErrorDetails, PoisonMessageType,
    providers::{
        DispatcherCapabilityFilter, KvEntry, OrchestrationItem, ProviderError, SessionFetchConfig,
        TagFilter, WorkItem,
    },
};
use tokio::{runtime::Handle, time::Instant};
use tokio_postgres::types::Type;
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use super::{PostgresProvider, size};
use crate::{
    cache::Edition,
    hold::Dispatcher,
    item::{self, packed, text_of, unsigned},
    lease::{Known, Token},
    store::take::{Taken, TakenInstance, TakenTask, WantInstance, WantTask},
    store::{owned, statements},
    topic::{DOOR, stored_tags},
};

/// With the token of its lease, and how often it was taken.
type Leased<T> = (T, String, u32);

/// What was taken, until the caller has it. If the caller has gone meanwhile, it is given back at once
/// and not when its lease ends.
struct Fetched<T> {
    item: Option<Leased<T>>,
    provider: PostgresProvider,
    give_back: fn(&PostgresProvider, &str) -> Option<Write<bool>>,
}

impl<T> Fetched<T> {
    fn into_item(mut self) -> Option<Leased<T>> {
        self.item.take()
    }
}

impl<T> Drop for Fetched<T> {
    fn drop(&mut self) {
        let Some((_, token, _)) = &self.item else {
            return;
        };
        // At the end of a runtime nobody is left to do it.
        if Handle::try_current().is_ok()
            && let Some(given_back) = (self.give_back)(&self.provider, token)
        {
            tracing::debug!(
                "the dispatcher that fetched an item has gone; its lease is given back"
            );
            drop(given_back.commit(&self.provider.inner.store.hub.bus));
        }
    }
}

fn attempts(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(0)
}

impl PostgresProvider {
    pub(super) async fn fetch_orchestration(
        &self,
        lease: Duration,
        poll: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<Leased<OrchestrationItem>>, ProviderError> {
        let versions = match filter.map(|filter| filter.supported_duroxide_versions.first()) {
            None => None,
            Some(Some(range)) => Some((packed(&range.min), packed(&range.max))),
            // Whoever supports nothing gets nothing.
            Some(None) => return Ok(None),
        };
        let inner = &self.inner;
        let dispatcher = Dispatcher {
            operation: "fetch_orchestration_item",
            hub: &inner.store.hub,
            quiet: &inner.orchestrations_quiet,
            long_poll: &inner.options.long_poll,
            keys: vec![inner.store.topics.orchestration_key(filter)],
            alarms: 1,
        };
        let take = || {
            let want = WantInstance {
                lease,
                versions,
                token: Uuid::new_v4(),
            };
            self.take_instance(want).commit(&inner.store.hub.bus)
        };
        let fetched = dispatcher.hold(poll, take).await?;
        Ok(fetched.and_then(Fetched::into_item))
    }

    /// No waiter waits for an item to be leased.
    fn take_instance(&self, want: WantInstance) -> Write<Taken<Fetched<OrchestrationItem>>> {
        let provider = self.clone();
        let run = async move {
            let lease = want.lease;
            Ok(match provider.inner.store.instances.submit(want).await? {
                Taken::Something(taken) => {
                    let item = provider.orchestration(taken, lease).await?;
                    Taken::Something(Fetched {
                        item: Some(item),
                        provider,
                        give_back: |provider, token| {
                            let token = Token::read(token)?;
                            Some(provider.give_back_instance(token, None, false))
                        },
                    })
                }
                Taken::Nothing { due, lapse } => Taken::Nothing { due, lapse },
            })
        };
        Write::new(DOOR, run, |_| Wakes::none())
    }

    async fn orchestration(
        &self,
        taken: TakenInstance,
        lease: Duration,
    ) -> Result<Leased<OrchestrationItem>, Error> {
        let inner = &self.inner;
        let token = Token {
            secret: taken.token,
            key: taken.instance.clone(),
        };
        let wake = inner.store.topics.wake_orchestrations(1);
        let engine = &inner.store.hub.engine;
        inner.leases.take(engine, token.secret, lease, wake);

        let mut error = None;
        let mut messages = Vec::with_capacity(taken.items.len());
        for text in &taken.items {
            match serde_json::from_str(text) {
                Ok(message) => messages.push(message),
                // Said like a history that cannot be read: the runtime tries again and then gives
                // this one instance up.
                Err(reason) => error = Some(format!("a message cannot be read: {reason}")),
            }
        }
        let edition = match (
            taken.incarnation,
            taken.execution,
            taken.last_event,
            taken.edits,
        ) {
            (Some(incarnation), Some(execution), Some(last), Some(edits)) => Some(Edition {
                incarnation,
                execution,
                last,
                edits,
            }),
            _ => None,
        };
        let history = if taken.is_cached {
            let known = edition.and_then(|edition| inner.cache.get(&taken.instance, edition));
            match known {
                Some(events) => Ok(events),
                // It was driven out: the one time it is read by itself.
                None => match self
                    .history("fetch_orchestration_item", &taken.instance)
                    .await
                {
                    Ok(events) => Ok(events),
                    // Nothing is wrong with the history: an outage must not count as an attempt.
                    Err(error) if error.is_retryable() => {
                        let given = self.give_back_instance(token, None, false);
                        let given = given.commit(&inner.store.hub.bus).await;
                        tracing::debug!(?given, "a history could not be asked for");
                        return Err(Error::Unavailable(error.message));
                    }
                    Err(error) => Err(error.message),
                },
            }
        } else {
            let texts = taken.history.unwrap_or_default();
            let events = item::read_events(&texts);
            if let (Ok(events), Some(edition)) = (&events, edition) {
                let bytes = size(&texts);
                inner
                    .cache
                    .put(&taken.instance, edition, events.clone(), bytes);
            }
            events
        };
        let history = history.unwrap_or_else(|reason| {
            error = Some(reason);
            Vec::new()
        });
        let known = match (&error, edition) {
            (Some(_), _) => Known::Nothing,
            (None, Some(edition)) => Known::Edition(edition),
            (None, None) if taken.execution.is_none() => Known::New,
            (None, None) => Known::Nothing,
        };
        inner.leases.know(token.secret, known);

        let (name, version) = named(&messages);
        let values = taken.values.into_iter().map(|(key, value, updated_ms)| {
            let entry = KvEntry {
                value: text_of(value),
                last_updated_at_ms: unsigned(updated_ms),
            };
            (key, entry)
        });
        let kv_snapshot: HashMap<_, _> = values.collect();
        let item = OrchestrationItem {
            orchestration_name: taken.name.or(name).unwrap_or_default(),
            version: taken
                .version
                .or(version)
                .unwrap_or_else(|| "unknown".into()),
            execution_id: taken.execution.map_or(1, unsigned),
            history,
            messages,
            history_error: error,
            kv_snapshot,
            instance: taken.instance,
        };
        Ok((item, token.to_string(), attempts(taken.attempts)))
    }

    pub(super) async fn fetch_work(
        &self,
        lease: Duration,
        poll: Duration,
        session: Option<&SessionFetchConfig>,
        filter: &TagFilter,
    ) -> Result<Option<Leased<WorkItem>>, ProviderError> {
        if matches!(filter, TagFilter::None) {
            if self.inner.options.long_poll.enabled {
                tokio::time::sleep(poll).await;
            }
            return Ok(None);
        }
        let inner = &self.inner;
        let tags = stored_tags(filter);
        let dispatcher = Dispatcher {
            operation: "fetch_work_item",
            hub: &inner.store.hub,
            quiet: &inner.tasks_quiet,
            long_poll: &inner.options.long_poll,
            keys: inner.store.topics.task_keys(session, &tags),
            alarms: 2,
        };
        let session = session.map(|session| (session.owner_id.clone(), session.lock_timeout));
        let take = || {
            let want = WantTask {
                lease,
                session: session.clone(),
                token: Uuid::new_v4(),
                tags: tags.clone(),
            };
            self.take_task(want).commit(&inner.store.hub.bus)
        };
        let fetched = dispatcher.hold(poll, take).await?;
        Ok(fetched.and_then(Fetched::into_item))
    }

    /// As [`Self::take_instance`].
    fn take_task(&self, want: WantTask) -> Write<Taken<Fetched<WorkItem>>> {
        let provider = self.clone();
        let run = async move {
            loop {
                let want = WantTask {
                    token: Uuid::new_v4(),
                    ..want.clone()
                };
                let lease = want.lease;
                let taken = match provider.inner.store.tasks.submit(want).await? {
                    Taken::Something(taken) => taken,
                    Taken::Nothing { due, lapse } => return Ok(Taken::Nothing { due, lapse }),
                };
                // One that cannot be read is set aside: the next one.
                if let Some(item) = provider.activity(taken, lease).await? {
                    return Ok(Taken::Something(Fetched {
                        item: Some(item),
                        provider,
                        give_back: |provider, token| {
                            let token = Token::read(token)?;
                            Some(provider.give_back_task(token, None, false))
                        },
                    }));
                }
            }
        };
        Write::new(DOOR, run, |_| Wakes::none())
    }

    async fn activity(
        &self,
        taken: TakenTask,
        lease: Duration,
    ) -> Result<Option<Leased<WorkItem>>, Error> {
        let inner = &self.inner;
        let token = Token {
            secret: taken.token,
            key: taken.id,
        };
        let item: WorkItem = match serde_json::from_str(&taken.item) {
            Ok(item) => item,
            Err(reason) => {
                self.spoil(&taken, &reason.to_string()).await?;
                return Ok(None);
            }
        };
        if let WorkItem::ActivityExecute {
            session_id: Some(_),
            ..
        } = &item
        {
            inner.sessions.claims.fetch_add(1, Ordering::SeqCst);
        }
        let wake = inner
            .store
            .topics
            .wake_tasks(&super::write::kind_of(&item), 1);
        let engine = &inner.store.hub.engine;
        inner.leases.take(engine, token.secret, lease, wake);
        Ok(Some((item, token.to_string(), attempts(taken.attempts))))
    }

    /// An activity that cannot be read is set aside, and its orchestration is told.
    async fn spoil(&self, taken: &TakenTask, reason: &str) -> Result<(), Error> {
        tracing::error!(
            instance = taken.instance,
            activity = taken.activity,
            reason,
            "an activity cannot be read; it is set aside and its orchestration told that it failed"
        );
        let (execution_id, activity_id) = (unsigned(taken.execution), unsigned(taken.activity));
        let failure = WorkItem::ActivityFailed {
            instance: taken.instance.clone(),
            execution_id,
            id: activity_id,
            details: ErrorDetails::Poison {
                attempt_count: attempts(taken.attempts),
                max_attempts: 0,
                message_type: PoisonMessageType::Activity {
                    instance: taken.instance.clone(),
                    execution_id,
                    activity_name: "unknown".into(),
                    activity_id,
                },
                message: reason.to_owned(),
            },
        };
        let failure = serde_json::to_string(&failure)
            .map_err(|error| Error::Failed(format!("cannot be written: {error}")))?;
        let store = &self.inner.store;
        let parameters = vec![
            owned(taken.id, Type::INT8),
            owned(taken.token, Type::UUID),
            owned(reason.to_owned(), Type::TEXT),
            owned(failure, Type::TEXT),
        ];
        let wake = store.topics.wake_orchestrations(1);
        // Tried once: the activity is taken again when its lease ends.
        let until = Instant::now();
        let spoilt = store.write("spoil", statements::SPOIL, parameters, until, |_| {
            wake.into()
        });
        spoilt.commit(&store.hub.bus).await.map(drop)
    }
}

/// What a message that starts an orchestration says of it.
fn named(messages: &[WorkItem]) -> (Option<String>, Option<String>) {
    let start = messages.iter().find_map(|message| match message {
        WorkItem::StartOrchestration {
            orchestration,
            version,
            ..
        }
        | WorkItem::ContinueAsNew {
            orchestration,
            version,
            ..
        } => Some((orchestration.clone(), version.clone())),
        _ => None,
    });
    start.map_or((None, None), |(name, version)| (Some(name), version))
}
