//! duroxide's `Provider`: the calls of the runtime.

use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use duroxide::{
    Event, EventKind, SystemStats,
    providers::{
        DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin,
        ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, WorkItem,
    },
};
use tokio_postgres::types::Type;
use wakeline_store::Error;

use super::{
    PostgresProvider,
    cache::{CacheUpdate, HistoryVersion},
    error::refuse_nul,
    held_leases::Token,
    item::{self, packed},
    lease::lost_lease,
    parsed,
};
use crate::{
    row::{count, number, text_of, unsigned},
    store::{
        Parameter,
        changes::{ActivityEnd, Change, TurnEnd},
        fetch::micros,
        history::HistoryRead,
        is_transient, owned, statements,
    },
};

#[async_trait::async_trait]
impl Provider for PostgresProvider {
    fn name(&self) -> &str {
        "wakeline-postgres"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        self.fetch_orchestration(lock_timeout, poll_timeout, filter)
            .await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let operation = "ack_orchestration_item";
        let token = Token::<String>::read(lock_token).ok_or_else(|| lost_lease(operation))?;
        let events = item::events(operation, &history_delta)?;
        for (field, text) in [
            ("the orchestration's name", &metadata.orchestration_name),
            (
                "the orchestration's version",
                &metadata.orchestration_version,
            ),
            ("the parent's id", &metadata.parent_instance_id),
        ] {
            refuse_nul(operation, field, text.as_deref().unwrap_or_default())?;
        }
        let inner = &self.inner;
        let is_named =
            metadata.orchestration_name.is_some() && metadata.orchestration_version.is_some();
        let version = HistoryVersion {
            incarnation: rand::random(),
            execution: number(execution_id),
            last_event: events.iter().map(|(id, _)| *id).max().unwrap_or(0),
            edits: 0,
        };
        let fetched = inner.leases.history(token.secret);
        let update = self.cache_update(&token.key, fetched, is_named, version);
        let is_cached = !matches!(update, CacheUpdate::Evict);
        let bytes = events.iter().map(|(_, text)| text.len()).sum();
        let turn = TurnEnd {
            instance: token.key.clone(),
            token: token.secret,
            execution: version.execution,
            name: metadata.orchestration_name.filter(|_| is_named),
            version: metadata.orchestration_version.filter(|_| is_named),
            parent: metadata.parent_instance_id,
            pinned: metadata.pinned_duroxide_version.as_ref().map(packed),
            status: metadata.status,
            output: metadata.output.map(String::into_bytes),
            custom_status: item::custom_status(&history_delta),
            cached_by: is_cached.then_some(inner.node),
            incarnation: version.incarnation,
            values: item::value_changes(operation, &history_delta)?,
            events,
            messages: orchestrator_items
                .iter()
                .map(|message| item::message(operation, message))
                .collect::<Result<_, _>>()?,
            activities: worker_items
                .iter()
                .map(|activity| item::activity(operation, activity))
                .collect::<Result<_, _>>()?,
            cancelled: cancelled_activities
                .into_iter()
                .map(|activity| {
                    let execution = number(activity.execution_id);
                    (activity.instance, execution, number(activity.activity_id))
                })
                .collect(),
        };
        let until = self.until_lease_ends(token.secret);
        let turn = Change::EndTurn(Box::new(turn));
        let applied = inner.batches.apply(turn, until, is_transient);
        let inner = inner.clone();
        let applied = applied.map(move |is_held| {
            if is_held {
                let engine = &inner.shared.engine;
                inner.leases.remove(engine, token.secret);
                inner.cache.update(&token.key, update, history_delta, bytes);
            }
            is_held
        });
        self.commit_held(operation, applied).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.abandon::<String>(lock_token, delay, !ignore_attempt)
            .await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.history("read", instance).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        let operation = "read_with_execution";
        let parameters: [Parameter<'_>; 2] =
            [(&instance, Type::TEXT), (&number(execution_id), Type::INT8)];
        let rows = self
            .query(operation, statements::READ_WITH_EXECUTION, &parameters)
            .await?;
        let texts: Vec<String> = rows.iter().map(|row| row.get("data")).collect();
        parsed(operation, &texts)
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let operation = "append_with_execution";
        let events = item::events(operation, &new_events)?;
        let (numbers, data): (Vec<i64>, Vec<String>) = events.into_iter().unzip();
        let parameters = vec![
            owned(instance.to_owned(), Type::TEXT),
            owned(number(execution_id), Type::INT8),
            owned(numbers, Type::INT8_ARRAY),
            owned(data, Type::TEXT_ARRAY),
        ];
        // One of the events may end the orchestration.
        let wake = self.inner.topics.wake_instance(instance);
        let append = self.inner.store.write(
            operation,
            statements::APPEND_WITH_EXECUTION,
            parameters,
            self.retry_until(),
            |_| wake.into(),
        );
        self.commit(operation, append).await.map(drop)
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        let operation = "enqueue_for_worker";
        let activity = Change::Schedule(item::activity(operation, &item)?);
        let batches = &self.inner.batches;
        let applied = batches.apply(activity, self.retry_until(), is_transient);
        self.commit(operation, applied).await.map(drop)
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        self.fetch_activity(lock_timeout, poll_timeout, session, tag_filter)
            .await
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        let operation = "ack_work_item";
        let token = Token::<i64>::read(token).ok_or_else(|| lost_lease(operation))?;
        let completion = match completion {
            None => None,
            Some(item @ (WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. })) => {
                Some(item::message(operation, &item)?)
            }
            Some(_) => {
                let message = "only ActivityCompleted or ActivityFailed ends an activity";
                return Err(ProviderError::permanent(operation, message));
            }
        };
        let end = Change::EndActivity(ActivityEnd {
            activity: token.key,
            token: token.secret,
            completion,
        });
        let until = self.until_lease_ends(token.secret);
        let applied = self.inner.batches.apply(end, until, is_transient);
        self.commit_held(operation, self.ending_lease(token.secret, applied))
            .await
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.renew::<i64>(token, extend_for).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let sessions = &self.inner.sessions;
        let owners = owner_ids.join("\0");
        if owner_ids.is_empty() || sessions.are_none(&owners) {
            return Ok(0);
        }
        let claims = sessions.claims.load(Ordering::SeqCst);
        let operation = "renew_session_lock";
        let owner_ids: Vec<String> = owner_ids.iter().map(|id| (*id).to_owned()).collect();
        let parameters = vec![
            owned(owner_ids, Type::TEXT_ARRAY),
            owned(micros(extend_for), Type::INT8),
            owned(micros(idle_timeout), Type::INT8),
        ];
        let renew = self.silent_write(operation, statements::RENEW_SESSION_LOCK, parameters);
        let rows = self.commit(operation, renew).await?;
        let count = unsigned(rows[0].get("sessions"));
        if count == 0 {
            sessions.remember_none(owners, claims);
        }
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    async fn cleanup_orphaned_sessions(
        &self,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.inner.leases.remove_expired();
        let operation = "cleanup_orphaned_sessions";
        let cleanup =
            self.silent_write(operation, statements::CLEANUP_ORPHANED_SESSIONS, Vec::new());
        let rows = self.commit(operation, cleanup).await?;
        Ok(usize::try_from(rows[0].get::<_, i64>("sessions")).unwrap_or(0))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.abandon::<i64>(token, delay, !ignore_attempt).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.renew::<String>(token, extend_for).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let operation = "enqueue_for_orchestrator";
        let mut message = item::message(operation, &item)?;
        if let Some(delay) = delay {
            message.after_us = Some(micros(delay));
        }
        // After a lost answer the caller decides whether to repeat what must not be sent twice.
        let is_repeatable = item::is_repeatable(&item);
        let may_repeat = move |error: &Error| {
            is_transient(error) && (is_repeatable || !matches!(error, Error::OutcomeUnknown(_)))
        };
        let batches = &self.inner.batches;
        let applied = batches.apply(Change::Send(message), self.retry_until(), may_repeat);
        self.commit(operation, applied).await.map(drop)
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let read = HistoryRead {
            instance: instance.to_owned(),
            cached: None,
            with_history: false,
        };
        let stored = self.read_stored("get_custom_status", read).await?;
        let version = unsigned(stored.custom_status_version);
        Ok((version > last_seen_version).then(|| (stored.custom_status.map(text_of), version)))
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        let parameters: [Parameter<'_>; 2] = [(&instance, Type::TEXT), (&key, Type::TEXT)];
        let rows = self
            .query("get_kv_value", statements::GET_KV_VALUE, &parameters)
            .await?;
        let value: Option<Vec<u8>> = rows.first().and_then(|row| row.get("value"));
        Ok(value.map(text_of))
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        let statement = statements::GET_KV_ALL_VALUES;
        let rows = self
            .query_by("get_kv_all_values", statement, instance)
            .await?;
        Ok(rows
            .iter()
            .map(|row| (row.get("key"), text_of(row.get("value"))))
            .collect())
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        let operation = "get_instance_stats";
        let rows = self
            .query_by(operation, statements::INSTANCE_STATS, instance)
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let started: Option<String> = row.get("started");
        let started = parsed(operation, &Vec::from_iter(started))?;
        let carried = match started.first().map(|event| &event.kind) {
            Some(EventKind::OrchestrationStarted {
                carry_forward_events: Some(events),
                ..
            }) => events.len() as u64,
            _ => 0,
        };
        Ok(Some(SystemStats {
            history_event_count: count(row, "events"),
            history_size_bytes: count(row, "event_bytes"),
            queue_pending_count: carried,
            kv_user_key_count: count(row, "keys"),
            kv_total_value_bytes: count(row, "value_bytes"),
        }))
    }
}
