//! Fetching: what a dispatcher takes, made into what the runtime works on.

use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use duroxide::{
    ErrorDetails, PoisonMessageType,
    providers::{
        DispatcherCapabilityFilter, KvEntry, OrchestrationItem, ProviderError, SessionFetchConfig,
        TagFilter, WorkItem,
    },
};
use tokio::sync::oneshot;
use tokio_postgres::types::Type;
use uuid::Uuid;
use wakeline_store::Error;

use super::{PostgresProvider, size};
use crate::{
    cache::Edition,
    hold::Dispatcher,
    item::{self, packed, text_of, unsigned},
    lease::{Known, Token},
    store::statements,
    store::take::{Taken, TakenInstance, TakenTask, WantInstance, WantTask},
    topic::stored_tags,
};

type Orchestration = (OrchestrationItem, String, u32);
type Activity = (WorkItem, String, u32);

fn attempts(count: i32) -> u32 {
    u32::try_from(count).unwrap_or(0)
}

impl PostgresProvider {
    pub(super) async fn fetch_orchestration(
        &self,
        lease: Duration,
        poll: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<Orchestration>, ProviderError> {
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
            places: vec![inner.store.topics.orchestration_place(filter)],
            alarms: 1,
        };
        let want = || {
            let token = Uuid::new_v4();
            let want = WantInstance {
                lease,
                versions,
                token,
            };
            self.take_instance(want)
        };
        dispatcher.hold(poll, want).await
    }

    /// Takes an instance in a task of its own: if the caller goes meanwhile, what was taken is given
    /// back at once and not when its lease ends.
    async fn take_instance(&self, want: WantInstance) -> Result<Taken<Orchestration>, Error> {
        let (answer, answered) = oneshot::channel();
        let provider = self.clone();
        tokio::spawn(async move {
            let lease = want.lease;
            let taken = match provider.inner.store.instances.submit(want).await {
                Ok(Taken::Something(taken)) => provider
                    .orchestration(taken, lease)
                    .await
                    .map(Taken::Something),
                Ok(Taken::Nothing { due, lapse }) => Ok(Taken::Nothing { due, lapse }),
                Err(error) => Err(error),
            };
            if let Err(Ok(Taken::Something((_, token, _)))) = answer.send(taken) {
                let given = provider.give_back_instance(&token, None, false).await;
                tracing::debug!(?given, "whoever fetched an orchestration has gone");
            }
        });
        answered
            .await
            .unwrap_or_else(|_| Err(Error::Unavailable("the runtime is shutting down".into())))
    }

    async fn orchestration(
        &self,
        taken: TakenInstance,
        lease: Duration,
    ) -> Result<Orchestration, Error> {
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
                        let given = self
                            .give_back_instance(&token.to_string(), None, false)
                            .await;
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
    ) -> Result<Option<Activity>, ProviderError> {
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
            places: inner.store.topics.task_places(session, &tags),
            alarms: 2,
        };
        let session = session.map(|session| (session.owner_id.clone(), session.lock_timeout));
        let want = || {
            self.take_task(WantTask {
                lease,
                session: session.clone(),
                token: Uuid::new_v4(),
                tags: tags.clone(),
            })
        };
        dispatcher.hold(poll, want).await
    }

    /// As [`Self::take_instance`].
    async fn take_task(&self, want: WantTask) -> Result<Taken<Activity>, Error> {
        let (answer, answered) = oneshot::channel();
        let provider = self.clone();
        tokio::spawn(async move {
            let taken = loop {
                let want = WantTask {
                    token: Uuid::new_v4(),
                    ..want.clone()
                };
                let lease = want.lease;
                match provider.inner.store.tasks.submit(want).await {
                    Ok(Taken::Something(taken)) => match provider.activity(taken, lease).await {
                        Ok(Some(activity)) => break Ok(Taken::Something(activity)),
                        // It could not be read and is set aside: the next one.
                        Ok(None) => {}
                        Err(error) => break Err(error),
                    },
                    Ok(Taken::Nothing { due, lapse }) => break Ok(Taken::Nothing { due, lapse }),
                    Err(error) => break Err(error),
                }
            };
            if let Err(Ok(Taken::Something((_, token, _)))) = answer.send(taken) {
                let given = provider.give_back_task(&token, None, false).await;
                tracing::debug!(?given, "whoever fetched an activity has gone");
            }
        });
        answered
            .await
            .unwrap_or_else(|_| Err(Error::Unavailable("the runtime is shutting down".into())))
    }

    async fn activity(&self, taken: TakenTask, lease: Duration) -> Result<Option<Activity>, Error> {
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
        let spoilt = store
            .query(
                "spoil",
                statements::SPOIL,
                &[
                    (&taken.id, Type::INT8),
                    (&taken.token, Type::UUID),
                    (&reason, Type::TEXT),
                    (&failure, Type::TEXT),
                ],
            )
            .await;
        // Also when the answer was lost: it may have been done.
        store
            .hub
            .bus
            .publish(&[store.topics.wake_orchestrations(1)]);
        spoilt.map(drop)
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
