//! Acknowledging, sending, giving back and prolonging.

use std::time::Duration;

use duroxide::{
    Event,
    providers::{ExecutionMetadata, ProviderError, ScheduledActivityIdentifier, WorkItem},
};
use tokio::time::Instant;
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use super::PostgresProvider;
use crate::{
    cache::Edition,
    error::{is_transient, refuse_nul},
    item::{self, number, packed},
    lease::{Known, Token},
    store::{
        OwnedParameter, owned, statements,
        step::{Finish, Turn, What},
        take::micros,
    },
    topic::{TaskKind, stored_tag},
};

/// After a lease has certainly ended the database is asked once more: only it knows.
const MARGIN: Duration = Duration::from_secs(1);

pub(super) struct EndedTurn {
    pub(super) execution: i64,
    pub(super) events: Vec<Event>,
    pub(super) worker_items: Vec<WorkItem>,
    pub(super) orchestrator_items: Vec<WorkItem>,
    pub(super) metadata: ExecutionMetadata,
    pub(super) cancelled: Vec<ScheduledActivityIdentifier>,
}

/// Who may take an activity that is free again. Whether its session is held is not known here.
pub(super) fn kind_of(item: &WorkItem) -> TaskKind {
    let (tag, has_session) = match item {
        WorkItem::ActivityExecute {
            tag, session_id, ..
        } => (tag.as_deref(), session_id.is_some()),
        _ => (None, false),
    };
    TaskKind {
        tag: stored_tag(tag),
        has_session,
        owner: None,
    }
}

fn lost(operation: &str) -> ProviderError {
    ProviderError::permanent(
        operation,
        "Invalid lock token: the lock has expired, was taken over, or its item is gone",
    )
}

impl PostgresProvider {
    /// Until when a call under a lease is tried again. Before that an error would make the runtime
    /// fail an orchestration whose lease still holds.
    fn until_lease_ends(&self, secret: Uuid) -> Instant {
        self.inner
            .leases
            .ends(secret)
            .map_or_else(|| self.patience(), |ends| ends + MARGIN)
    }

    /// A statement about a lease. Whether it was held: the statement says nothing of one that is lost.
    fn about_lease(
        &self,
        operation: &'static str,
        statement: &'static str,
        secret: Uuid,
        parameters: Vec<OwnedParameter>,
        wakes: impl FnOnce(&Row) -> Wakes + Send + 'static,
    ) -> Write<bool> {
        let until = self.until_lease_ends(secret);
        let wakes = |rows: &[Row]| rows.first().map_or_else(Wakes::none, wakes);
        let store = &self.inner.store;
        store
            .write(operation, statement, parameters, until, wakes)
            .map(|rows| !rows.is_empty())
    }

    /// Commits what needs a lease that is held.
    async fn commit_held(
        &self,
        operation: &'static str,
        write: Write<bool>,
    ) -> Result<(), ProviderError> {
        if self.commit(operation, write).await? {
            Ok(())
        } else {
            Err(lost(operation))
        }
    }

    /// The lease is not needed any more when `write` is done.
    fn ending_lease(&self, secret: Uuid, write: Write<bool>) -> Write<bool> {
        let inner = self.inner.clone();
        write.map(move |is_held| {
            inner.leases.end(&inner.store.hub.engine, secret);
            is_held
        })
    }

    pub(super) async fn end_turn(
        &self,
        token: &str,
        ended: EndedTurn,
    ) -> Result<(), ProviderError> {
        let operation = "ack_orchestration_item";
        let Some(token) = Token::<String>::read(token) else {
            return Err(lost(operation));
        };
        let EndedTurn {
            execution,
            events,
            metadata,
            ..
        } = ended;
        let texts = item::events(operation, &events)?;
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
        let known = inner.leases.known(token.secret);
        let is_named =
            metadata.orchestration_name.is_some() && metadata.orchestration_version.is_some();
        let is_remembered = match known {
            Known::Nothing => false,
            Known::New => is_named,
            Known::Edition(edition) if edition.execution == execution => {
                inner.cache.edition(&token.key) == Some(edition)
            }
            Known::Edition(edition) => execution > edition.execution,
        } && inner.options.history_cache_bytes > 0;
        let incarnation = rand::random();
        let letters = ended.orchestrator_items.iter();
        let tasks = ended.worker_items.iter();
        let last = texts.iter().map(|(id, _)| *id).max();
        let bytes = size_of_events(&texts);
        let turn = Turn {
            instance: token.key.clone(),
            token: token.secret,
            execution,
            name: metadata.orchestration_name.filter(|_| is_named),
            version: metadata.orchestration_version.filter(|_| is_named),
            parent: metadata.parent_instance_id,
            pinned: metadata.pinned_duroxide_version.as_ref().map(packed),
            status: metadata.status,
            output: metadata.output.map(String::into_bytes),
            custom: item::custom_status(&events),
            cached_by: is_remembered.then_some(inner.node),
            incarnation,
            changes: item::changes(operation, &events)?,
            events: texts,
            letters: letters
                .map(|letter| item::letter(operation, letter))
                .collect::<Result<_, _>>()?,
            tasks: tasks
                .map(|task| item::task(operation, task))
                .collect::<Result<_, _>>()?,
            cancelled: ended
                .cancelled
                .into_iter()
                .map(|activity| {
                    let execution = number(activity.execution_id);
                    (activity.instance, execution, number(activity.activity_id))
                })
                .collect(),
        };
        let until = self.until_lease_ends(token.secret);
        let step = inner
            .store
            .step(What::Turn(Box::new(turn)), until, is_transient);
        let inner = inner.clone();
        let step = step.map(move |is_held| {
            if is_held {
                inner.leases.end(&inner.store.hub.engine, token.secret);
                match known {
                    Known::New if is_remembered => {
                        let edition = Edition {
                            incarnation,
                            execution,
                            last: last.unwrap_or(0),
                            edits: 0,
                        };
                        inner.cache.put(&token.key, edition, events, bytes);
                    }
                    Known::Edition(before) if is_remembered && before.execution == execution => {
                        let last = last.unwrap_or(0).max(before.last);
                        let after = Edition { last, ..before };
                        inner.cache.append(&token.key, before, after, events, bytes);
                    }
                    Known::Edition(before) if is_remembered => {
                        let edition = Edition {
                            execution,
                            last: last.unwrap_or(0),
                            ..before
                        };
                        inner.cache.put(&token.key, edition, events, bytes);
                    }
                    _ => inner.cache.forget(&token.key),
                }
            }
            is_held
        });
        self.commit_held(operation, step).await
    }

    pub(super) async fn end_activity(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        let operation = "ack_work_item";
        let Some(token) = Token::<i64>::read(token) else {
            return Err(lost(operation));
        };
        let is_completion = |item: &WorkItem| {
            matches!(
                item,
                WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. }
            )
        };
        if completion.as_ref().is_some_and(|item| !is_completion(item)) {
            let message = "only the completion or the failure of an activity ends it";
            return Err(ProviderError::permanent(operation, message));
        }
        let finish = Finish {
            task: token.key,
            token: token.secret,
            completion: completion
                .map(|item| item::letter(operation, &item))
                .transpose()?,
        };
        let until = self.until_lease_ends(token.secret);
        let store = &self.inner.store;
        let step = store.step(What::Finish(finish), until, is_transient);
        let step = self.ending_lease(token.secret, step);
        self.commit_held(operation, step).await
    }

    pub(super) async fn send(
        &self,
        item: &WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let operation = "enqueue_for_orchestrator";
        let mut letter = item::letter(operation, item)?;
        if let Some(delay) = delay {
            letter.after_us = Some(micros(delay));
        }
        // Without an answer the caller decides whether to send again what must not come twice.
        let is_repeatable = item::is_repeatable(item);
        let may_repeat = move |error: &Error| {
            is_transient(error) && (is_repeatable || !matches!(error, Error::OutcomeUnknown(_)))
        };
        let store = &self.inner.store;
        let step = store.step(What::Send(letter), self.patience(), may_repeat);
        self.commit(operation, step).await.map(drop)
    }

    pub(super) async fn schedule(&self, item: &WorkItem) -> Result<(), ProviderError> {
        let operation = "enqueue_for_worker";
        let task = item::task(operation, item)?;
        let store = &self.inner.store;
        let step = store.step(What::Schedule(task), self.patience(), is_transient);
        self.commit(operation, step).await.map(drop)
    }

    pub(super) async fn abandon_instance(
        &self,
        token: &str,
        delay: Option<Duration>,
        is_attempt: bool,
    ) -> Result<(), ProviderError> {
        let operation = "abandon_orchestration_item";
        let Some(token) = Token::read(token) else {
            return Err(lost(operation));
        };
        let given_back = self.give_back_instance(token, delay, is_attempt);
        self.commit_held(operation, given_back).await
    }

    pub(super) fn give_back_instance(
        &self,
        token: Token<String>,
        delay: Option<Duration>,
        is_attempt: bool,
    ) -> Write<bool> {
        let parameters = vec![
            owned(token.key, Type::TEXT),
            owned(token.secret, Type::UUID),
            owned(delay.map(micros), Type::INT8),
            owned(is_attempt, Type::BOOL),
        ];
        let store = self.inner.store.clone();
        let wakes = move |row: &Row| {
            let after = Duration::from_micros(u64::try_from(row.get::<_, i64>(0)).unwrap_or(0));
            let wake = store.topics.wake_orchestrations(1);
            store.hub.wakes_after(wake, after)
        };
        let statement = statements::GIVE_BACK_INSTANCE;
        let secret = token.secret;
        let given_back = self.about_lease(
            "abandon_orchestration_item",
            statement,
            secret,
            parameters,
            wakes,
        );
        self.ending_lease(secret, given_back)
    }

    pub(super) async fn abandon_task(
        &self,
        token: &str,
        delay: Option<Duration>,
        is_attempt: bool,
    ) -> Result<(), ProviderError> {
        let operation = "abandon_work_item";
        let Some(token) = Token::read(token) else {
            return Err(lost(operation));
        };
        let given_back = self.give_back_task(token, delay, is_attempt);
        self.commit_held(operation, given_back).await
    }

    pub(super) fn give_back_task(
        &self,
        token: Token<i64>,
        delay: Option<Duration>,
        is_attempt: bool,
    ) -> Write<bool> {
        let parameters = vec![
            owned(token.key, Type::INT8),
            owned(token.secret, Type::UUID),
            owned(delay.map(micros), Type::INT8),
            owned(is_attempt, Type::BOOL),
        ];
        let store = self.inner.store.clone();
        let wakes = move |row: &Row| {
            let kind = TaskKind {
                tag: row.get(0),
                has_session: row.get(1),
                owner: row.get(2),
            };
            let wake = store.topics.wake_tasks(&kind, 1);
            let session_end = store
                .hub
                .wakes_at_session_end(&store.topics, &kind, row.get(3));
            let wakes = store.hub.wakes_after(wake, delay.unwrap_or_default());
            wakes.and(session_end)
        };
        let statement = statements::GIVE_BACK_TASK;
        let secret = token.secret;
        let given_back =
            self.about_lease("abandon_work_item", statement, secret, parameters, wakes);
        self.ending_lease(secret, given_back)
    }

    pub(super) async fn prolong_instance(
        &self,
        token: &str,
        time: Duration,
    ) -> Result<(), ProviderError> {
        let operation = "renew_orchestration_item_lock";
        let Some(token) = Token::<String>::read(token) else {
            return Err(lost(operation));
        };
        let key = owned(token.key, Type::TEXT);
        let prolong = self.prolong(
            operation,
            statements::PROLONG_INSTANCE,
            token.secret,
            key,
            time,
        );
        self.commit_held(operation, prolong).await
    }

    pub(super) async fn prolong_task(
        &self,
        token: &str,
        time: Duration,
    ) -> Result<(), ProviderError> {
        let operation = "renew_work_item_lock";
        let Some(token) = Token::<i64>::read(token) else {
            return Err(lost(operation));
        };
        let key = owned(token.key, Type::INT8);
        let prolong = self.prolong(operation, statements::PROLONG_TASK, token.secret, key, time);
        self.commit_held(operation, prolong).await
    }

    fn prolong(
        &self,
        operation: &'static str,
        statement: &'static str,
        secret: Uuid,
        key: OwnedParameter,
        time: Duration,
    ) -> Write<bool> {
        let parameters = vec![
            key,
            owned(secret, Type::UUID),
            owned(micros(time), Type::INT8),
        ];
        let inner = self.inner.clone();
        self.about_lease(operation, statement, secret, parameters, |_| Wakes::none())
            .map(move |is_held| {
                if is_held {
                    let engine = &inner.store.hub.engine;
                    inner.leases.prolong(engine, secret, time);
                }
                is_held
            })
    }
}

fn size_of_events(events: &[(i64, String)]) -> usize {
    events.iter().map(|(_, text)| text.len()).sum()
}
