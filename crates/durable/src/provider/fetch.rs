//! Fetching: leases an item and converts it to the runtime's form.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

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
use wakeline_bus::{Bus, Wakes, Write};
use wakeline_store::Error;

use super::{
    PostgresProvider,
    cache::HistoryVersion,
    held_leases::{FetchedHistory, Token},
    hold::Dispatcher,
    item::{self, packed},
    lease::LeaseKey,
    size,
    topics::{ActivityKind, stored_tag, stored_tags},
};
use crate::{
    bus::DOOR,
    row::{text_of, unsigned},
    store::fetch::{FetchActivity, FetchInstance, FetchResult, LeasedActivity, LeasedInstance},
    store::{owned, statements},
};

/// An item with the token of its lease and the number of attempts.
type LeasedItem<T> = (T, String, u32);

/// Releases the lease of a fetched item when the caller has gone before it got the item; otherwise
/// the item would wait for the lease to expire.
struct FetchGuard<T> {
    item: Option<(LeasedItem<T>, Write<bool>)>,
    bus: Arc<Bus>,
}

impl<T> FetchGuard<T> {
    fn into_item(mut self) -> Option<LeasedItem<T>> {
        self.item.take().map(|(item, _release)| item)
    }
}

impl<T> Drop for FetchGuard<T> {
    fn drop(&mut self) {
        // Without a runtime nothing can be run any more.
        if let Some((_, release)) = self.item.take()
            && Handle::try_current().is_ok()
        {
            tracing::debug!("the dispatcher that fetched an item has gone; its lease is released");
            drop(release.commit(&self.bus));
        }
    }
}

/// The kind of an activity that becomes ready. The owner of its session is not known here.
fn kind_of(item: &WorkItem) -> ActivityKind {
    let (tag, has_session) = match item {
        WorkItem::ActivityExecute {
            tag, session_id, ..
        } => (tag.as_deref(), session_id.is_some()),
        _ => (None, false),
    };
    ActivityKind {
        tag: stored_tag(tag),
        has_session,
        owner: None,
    }
}

impl PostgresProvider {
    pub(super) async fn fetch_orchestration(
        &self,
        lease: Duration,
        poll: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<LeasedItem<OrchestrationItem>>, ProviderError> {
        let versions = match filter.map(|filter| filter.supported_duroxide_versions.first()) {
            None => None,
            Some(Some(range)) => Some((packed(&range.min), packed(&range.max))),
            // The dispatcher supports no version at all.
            Some(None) => return Ok(None),
        };
        let inner = &self.inner;
        let dispatcher = Dispatcher {
            operation: "fetch_orchestration_item",
            shared: &inner.shared,
            empty_polls: &inner.empty_orchestration_polls,
            long_poll: &inner.options.long_poll,
            keys: vec![inner.topics.orchestration_key(filter)],
            recheck_keys: 1,
        };
        let fetch = || {
            let fetch = FetchInstance {
                lease,
                versions,
                token: Uuid::new_v4(),
            };
            self.lease_instance(fetch).commit(&inner.shared.bus)
        };
        let fetched = dispatcher.hold(poll, fetch).await?;
        Ok(fetched.and_then(FetchGuard::into_item))
    }

    /// Wakes nobody: no waiter waits for an item to be leased.
    fn lease_instance(
        &self,
        fetch: FetchInstance,
    ) -> Write<FetchResult<FetchGuard<OrchestrationItem>>> {
        let provider = self.clone();
        let run = async move {
            let lease = fetch.lease;
            Ok(
                match provider.inner.batches.instances.submit(fetch).await? {
                    FetchResult::Item(leased) => {
                        FetchResult::Item(provider.orchestration(leased, lease).await?)
                    }
                    FetchResult::Nothing { due, expiry } => FetchResult::Nothing { due, expiry },
                },
            )
        };
        Write::new(DOOR, run, |_| Wakes::none())
    }

    fn guarded<T, K: LeaseKey>(&self, item: T, token: Token<K>, attempts: i32) -> FetchGuard<T> {
        let attempts = u32::try_from(attempts).unwrap_or(0);
        let item = (item, token.to_string(), attempts);
        FetchGuard {
            item: Some((item, self.release(token, None, false))),
            bus: self.inner.shared.bus.clone(),
        }
    }

    async fn orchestration(
        &self,
        leased: LeasedInstance,
        lease: Duration,
    ) -> Result<FetchGuard<OrchestrationItem>, Error> {
        let inner = &self.inner;
        let token = Token {
            secret: leased.token,
            key: leased.instance.clone(),
        };
        let wake = inner.topics.wake_orchestrations(1);
        let engine = &inner.shared.engine;
        inner.leases.add(engine, token.secret, lease, wake);

        let mut error = None;
        let mut messages = Vec::with_capacity(leased.items.len());
        for text in &leased.items {
            match serde_json::from_str(text) {
                Ok(message) => messages.push(message),
                // Reported like an unreadable history: the runtime repeats the fetch and then gives
                // up this instance alone.
                Err(reason) => error = Some(format!("a message cannot be read: {reason}")),
            }
        }
        let version = match (
            leased.incarnation,
            leased.execution,
            leased.last_event,
            leased.edits,
        ) {
            (Some(incarnation), Some(execution), Some(last_event), Some(edits)) => {
                Some(HistoryVersion {
                    incarnation,
                    execution,
                    last_event,
                    edits,
                })
            }
            _ => None,
        };
        let history = if leased.is_cached {
            let cached = version.and_then(|version| inner.cache.get(&leased.instance, version));
            match cached {
                Some(events) => Ok(events),
                // The history was evicted: only then is it read by a statement of its own.
                None => match self
                    .history("fetch_orchestration_item", &leased.instance)
                    .await
                {
                    Ok(events) => Ok(events),
                    // The history is not at fault: an outage must not count as an attempt.
                    Err(error) if error.is_retryable() => {
                        let release = self.release(token, None, false);
                        let released = release.commit(&inner.shared.bus).await;
                        tracing::debug!(?released, %error, "a history could not be read");
                        return Err(Error::Unavailable(error.message));
                    }
                    Err(error) => Err(error.message),
                },
            }
        } else {
            let texts = leased.history.unwrap_or_default();
            let events = item::read_events(&texts);
            if let (Ok(events), Some(version)) = (&events, version) {
                let (events, bytes) = (events.clone(), size(&texts));
                inner.cache.put(&leased.instance, version, events, bytes);
            }
            events
        };
        let history = history.unwrap_or_else(|reason| {
            error = Some(reason);
            Vec::new()
        });
        let fetched = match (&error, version) {
            (None, Some(version)) => FetchedHistory::Version(version),
            (None, None) if leased.execution.is_none() => FetchedHistory::New,
            _ => FetchedHistory::Unknown,
        };
        inner.leases.set_history(token.secret, fetched);

        let (name, version) = start_of(&messages);
        let values = leased.values.into_iter().map(|(key, value, updated_ms)| {
            let entry = KvEntry {
                value: text_of(value),
                last_updated_at_ms: unsigned(updated_ms),
            };
            (key, entry)
        });
        let kv_snapshot: HashMap<_, _> = values.collect();
        let item = OrchestrationItem {
            orchestration_name: leased.name.or(name).unwrap_or_default(),
            version: leased
                .version
                .or(version)
                .unwrap_or_else(|| "unknown".into()),
            execution_id: leased.execution.map_or(1, unsigned),
            history,
            messages,
            history_error: error,
            kv_snapshot,
            instance: leased.instance,
        };
        Ok(self.guarded(item, token, leased.attempts))
    }

    pub(super) async fn fetch_activity(
        &self,
        lease: Duration,
        poll: Duration,
        session: Option<&SessionFetchConfig>,
        filter: &TagFilter,
    ) -> Result<Option<LeasedItem<WorkItem>>, ProviderError> {
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
            shared: &inner.shared,
            empty_polls: &inner.empty_activity_polls,
            long_poll: &inner.options.long_poll,
            keys: inner.topics.activity_keys(session, &tags),
            recheck_keys: 2,
        };
        let session = session.map(|session| (session.owner_id.clone(), session.lock_timeout));
        let fetch = || {
            let fetch = FetchActivity {
                lease,
                session: session.clone(),
                token: Uuid::new_v4(),
                tags: tags.clone(),
            };
            self.lease_activity(fetch).commit(&inner.shared.bus)
        };
        let fetched = dispatcher.hold(poll, fetch).await?;
        Ok(fetched.and_then(FetchGuard::into_item))
    }

    /// Wakes nobody, as [`Self::lease_instance`].
    fn lease_activity(&self, fetch: FetchActivity) -> Write<FetchResult<FetchGuard<WorkItem>>> {
        let provider = self.clone();
        let run = async move {
            loop {
                let fetch = FetchActivity {
                    token: Uuid::new_v4(),
                    ..fetch.clone()
                };
                let lease = fetch.lease;
                let leased = match provider.inner.batches.activities.submit(fetch).await? {
                    FetchResult::Item(leased) => leased,
                    FetchResult::Nothing { due, expiry } => {
                        return Ok(FetchResult::Nothing { due, expiry });
                    }
                };
                // An activity that cannot be read is set aside, and the next one is fetched.
                if let Some(item) = provider.activity(leased, lease).await? {
                    return Ok(FetchResult::Item(item));
                }
            }
        };
        Write::new(DOOR, run, |_| Wakes::none())
    }

    async fn activity(
        &self,
        leased: LeasedActivity,
        lease: Duration,
    ) -> Result<Option<FetchGuard<WorkItem>>, Error> {
        let inner = &self.inner;
        let token = Token {
            secret: leased.token,
            key: leased.id,
        };
        let item: WorkItem = match serde_json::from_str(&leased.item) {
            Ok(item) => item,
            Err(reason) => {
                self.set_aside(&leased, &reason.to_string()).await?;
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
        let wake = inner.topics.wake_activities(&kind_of(&item), 1);
        let engine = &inner.shared.engine;
        inner.leases.add(engine, token.secret, lease, wake);
        Ok(Some(self.guarded(item, token, leased.attempts)))
    }

    /// Sets an unreadable activity aside and sends its orchestration the failure.
    async fn set_aside(&self, leased: &LeasedActivity, reason: &str) -> Result<(), Error> {
        tracing::error!(
            instance = leased.instance,
            activity = leased.number,
            reason,
            "an activity cannot be read; it was set aside, and its orchestration gets a failure"
        );
        let (execution_id, activity_id) = (unsigned(leased.execution), unsigned(leased.number));
        let failure = WorkItem::ActivityFailed {
            instance: leased.instance.clone(),
            execution_id,
            id: activity_id,
            details: ErrorDetails::Poison {
                attempt_count: u32::try_from(leased.attempts).unwrap_or(0),
                max_attempts: 0,
                message_type: PoisonMessageType::Activity {
                    instance: leased.instance.clone(),
                    execution_id,
                    activity_name: "unknown".into(),
                    activity_id,
                },
                message: reason.to_owned(),
            },
        };
        let failure = serde_json::to_string(&failure).map_err(|error| {
            Error::Failed(format!("the failure cannot be written as JSON: {error}"))
        })?;
        let inner = &self.inner;
        let parameters = vec![
            owned(leased.id, Type::INT8),
            owned(leased.token, Type::UUID),
            owned(reason.to_owned(), Type::TEXT),
            owned(failure, Type::TEXT),
        ];
        let wake = inner.topics.wake_orchestrations(1);
        // One attempt: the activity is fetched again when its lease expires.
        let until = Instant::now();
        let statement = statements::SET_ASIDE_ACTIVITY;
        let operation = "set_aside_activity";
        let store = &inner.store;
        let set_aside = store.write(operation, statement, parameters, until, |_| wake.into());
        set_aside.commit(&inner.shared.bus).await.map(drop)
    }
}

/// The name and version of the orchestration, if one of the messages starts it.
fn start_of(messages: &[WorkItem]) -> (Option<String>, Option<String>) {
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
