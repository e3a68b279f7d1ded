//! Acknowledging, sending, giving back and prolonging.

use std::{future::Future, sync::Arc, time::Duration};

use duroxide::{
    Event,
    providers::{ExecutionMetadata, ProviderError, ScheduledActivityIdentifier, WorkItem},
};
use tokio::time::Instant;
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;
use wakeline_store::Error;

use super::PostgresProvider;
use crate::{
    cache::Edition,
    error::{explain, is_transient, refuse_nul},
    item::{self, number, packed},
    lease::{Known, Token},
    store::{
        Parameter, ride_out_while, statements,
        step::{Finish, Step, Turn, What},
        take::micros,
    },
    topic::{DOOR, TaskKind, stored_tag},
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

    /// As [`ride_out_while`]. What may have been done without an answer, nobody was told of: all look.
    async fn ride_out_while<T, F>(
        &self,
        may_repeat: impl Fn(&Error) -> bool,
        until: Instant,
        mut attempt: impl FnMut(bool) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut was_unknown = false;
        let outcome = ride_out_while(may_repeat, until, |is_again| {
            was_unknown |= is_again;
            attempt(is_again)
        })
        .await;
        if was_unknown || matches!(outcome, Err(Error::OutcomeUnknown(_))) {
            self.inner.store.hub.bus.publish_door(DOOR);
        }
        outcome
    }

    /// What a statement about a lease says; the lease is lost if it says nothing.
    async fn about_lease(
        &self,
        operation: &'static str,
        statement: &str,
        secret: Uuid,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, ProviderError> {
        let until = self.until_lease_ends(secret);
        let ask = |_| self.inner.store.query(operation, statement, parameters);
        let rows = self.ride_out_while(is_transient, until, ask).await;
        let rows = rows.map_err(|error| explain(operation, &error))?;
        rows.into_iter().next().ok_or_else(|| lost(operation))
    }

    async fn step(&self, until: Instant, what: What) -> Result<bool, Error> {
        let what = Arc::new(what);
        self.ride_out_while(is_transient, until, |is_again| {
            self.inner.store.steps.submit(Step {
                what: what.clone(),
                is_again,
            })
        })
        .await
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
        let known = self.inner.leases.known(token.secret);
        let is_named =
            metadata.orchestration_name.is_some() && metadata.orchestration_version.is_some();
        let is_remembered = match known {
            Known::Nothing => false,
            Known::New => is_named,
            Known::Edition(edition) if edition.execution == execution => {
                self.inner.cache.edition(&token.key) == Some(edition)
            }
            Known::Edition(edition) => execution > edition.execution,
        } && self.inner.options.history_cache_bytes > 0;
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
            cached_by: is_remembered.then_some(self.inner.node),
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
        let is_held = self
            .step(until, What::Turn(Box::new(turn)))
            .await
            .map_err(|error| explain(operation, &error))?;
        if !is_held {
            return Err(lost(operation));
        }
        let inner = &self.inner;
        inner.leases.end(&inner.store.hub.engine, token.secret);
        let cache = &inner.cache;
        match known {
            Known::New if is_remembered => {
                let edition = Edition {
                    incarnation,
                    execution,
                    last: last.unwrap_or(0),
                    edits: 0,
                };
                cache.put(&token.key, edition, events, bytes);
            }
            Known::Edition(before) if is_remembered && before.execution == execution => {
                let last = last.unwrap_or(0).max(before.last);
                let after = Edition { last, ..before };
                cache.append(&token.key, before, after, events, bytes);
            }
            Known::Edition(before) if is_remembered => {
                let edition = Edition {
                    execution,
                    last: last.unwrap_or(0),
                    ..before
                };
                cache.put(&token.key, edition, events, bytes);
            }
            _ => cache.forget(&token.key),
        }
        Ok(())
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
        let is_held = self
            .step(until, What::Finish(finish))
            .await
            .map_err(|error| explain(operation, &error))?;
        self.inner
            .leases
            .end(&self.inner.store.hub.engine, token.secret);
        if is_held {
            Ok(())
        } else {
            Err(lost(operation))
        }
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
        let what = Arc::new(What::Send(letter));
        // Without an answer the caller decides whether to send again what must not come twice.
        let is_repeatable = item::is_repeatable(item);
        let may_repeat = |error: &Error| {
            is_transient(error) && (is_repeatable || !matches!(error, Error::OutcomeUnknown(_)))
        };
        self.ride_out_while(may_repeat, self.patience(), |is_again| {
            self.inner.store.steps.submit(Step {
                what: what.clone(),
                is_again,
            })
        })
        .await
        .map_err(|error| explain(operation, &error))?;
        Ok(())
    }

    pub(super) async fn schedule(&self, item: &WorkItem) -> Result<(), ProviderError> {
        let operation = "enqueue_for_worker";
        let task = item::task(operation, item)?;
        self.step(self.patience(), What::Schedule(task))
            .await
            .map_err(|error| explain(operation, &error))?;
        Ok(())
    }

    pub(super) async fn give_back_instance(
        &self,
        token: &str,
        delay: Option<Duration>,
        is_attempt: bool,
    ) -> Result<(), ProviderError> {
        let operation = "abandon_orchestration_item";
        let Some(token) = Token::<String>::read(token) else {
            return Err(lost(operation));
        };
        let store = &self.inner.store;
        let delay = delay.map(micros);
        let row = self
            .about_lease(
                operation,
                statements::GIVE_BACK_INSTANCE,
                token.secret,
                &[
                    (&token.key, Type::TEXT),
                    (&token.secret, Type::UUID),
                    (&delay, Type::INT8),
                    (&is_attempt, Type::BOOL),
                ],
            )
            .await;
        self.inner.leases.end(&store.hub.engine, token.secret);
        let row = row?;
        let due: i64 = row.get(0);
        let after = Duration::from_micros(u64::try_from(due).unwrap_or(0));
        store
            .hub
            .publish_after(store.topics.wake_orchestrations(1), after);
        Ok(())
    }

    pub(super) async fn give_back_task(
        &self,
        token: &str,
        delay: Option<Duration>,
        is_attempt: bool,
    ) -> Result<(), ProviderError> {
        let operation = "abandon_work_item";
        let Some(token) = Token::<i64>::read(token) else {
            return Err(lost(operation));
        };
        let store = &self.inner.store;
        let delay_us = delay.map(micros);
        let row = self
            .about_lease(
                operation,
                statements::GIVE_BACK_TASK,
                token.secret,
                &[
                    (&token.key, Type::INT8),
                    (&token.secret, Type::UUID),
                    (&delay_us, Type::INT8),
                    (&is_attempt, Type::BOOL),
                ],
            )
            .await;
        self.inner.leases.end(&store.hub.engine, token.secret);
        let row = row?;
        let kind = TaskKind {
            tag: row.get(0),
            has_session: row.get(1),
            owner: row.get(2),
        };
        let wake = store.topics.wake_tasks(&kind, 1);
        store.hub.publish_after(wake, delay.unwrap_or_default());
        store
            .hub
            .publish_session_end(&store.topics, &kind, row.get(3));
        Ok(())
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
        self.about_lease(
            operation,
            statements::PROLONG_INSTANCE,
            token.secret,
            &[
                (&token.key, Type::TEXT),
                (&token.secret, Type::UUID),
                (&micros(time), Type::INT8),
            ],
        )
        .await?;
        let engine = &self.inner.store.hub.engine;
        self.inner.leases.prolong(engine, token.secret, time);
        Ok(())
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
        self.about_lease(
            operation,
            statements::PROLONG_TASK,
            token.secret,
            &[
                (&token.key, Type::INT8),
                (&token.secret, Type::UUID),
                (&micros(time), Type::INT8),
            ],
        )
        .await?;
        let engine = &self.inner.store.hub.engine;
        self.inner.leases.prolong(engine, token.secret, time);
        Ok(())
    }
}

fn size_of_events(events: &[(i64, String)]) -> usize {
    events.iter().map(|(_, text)| text.len()).sum()
}
