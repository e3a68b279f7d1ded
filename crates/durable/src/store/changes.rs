//! Writes that many callers share: see `sql/002_changes.sql`.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row};
use uuid::Uuid;
use wakeline_bus::Wakes;
use wakeline_store::postgres::{Batch, RunError, Weigh};

use super::apply_changes::{self, Columns, Message, mailbox_wakes};
use crate::provider::{
    shared_bus::SharedBus,
    topics::{ActivityKind, Topics},
};

/// An activity for a worker.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    pub(crate) instance: String,
    pub(crate) execution: i64,
    pub(crate) number: i64,
    pub(crate) session: Option<String>,
    pub(crate) tag: String,
    pub(crate) item: String,
}

#[derive(Clone, Debug)]
pub(crate) enum CustomStatusChange {
    Set(Vec<u8>),
    Clear,
}

/// Sets or removes a value; without a key, removes all of them.
#[derive(Clone, Debug)]
pub(crate) struct ValueChange {
    pub(crate) key: Option<String>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) updated_ms: i64,
}

/// The end of an orchestration's turn.
#[derive(Clone, Debug)]
pub(crate) struct TurnEnd {
    pub(crate) instance: String,
    pub(crate) token: Uuid,
    pub(crate) execution: i64,
    /// Name and version, both or none: with them the instance is created if it is new.
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) pinned: Option<i64>,
    pub(crate) status: Option<String>,
    pub(crate) output: Option<Vec<u8>>,
    pub(crate) custom_status: Option<CustomStatusChange>,
    /// The process that caches the whole history afterwards.
    pub(crate) cached_by: Option<i64>,
    /// For a new instance.
    pub(crate) incarnation: i64,
    pub(crate) events: Vec<(i64, String)>,
    pub(crate) values: Vec<ValueChange>,
    pub(crate) messages: Vec<Message>,
    pub(crate) activities: Vec<Activity>,
    /// Activities to cancel: instance, execution, number.
    pub(crate) cancelled: Vec<(String, i64, i64)>,
}

/// The end of an activity.
#[derive(Clone, Debug)]
pub(crate) struct ActivityEnd {
    pub(crate) activity: i64,
    pub(crate) token: Uuid,
    /// For the orchestration that scheduled it; none if that has ended.
    pub(crate) completion: Option<Message>,
}

#[derive(Clone, Debug)]
pub(crate) enum Change {
    EndTurn(Box<TurnEnd>),
    EndActivity(ActivityEnd),
    Send(Message),
    Schedule(Activity),
}

#[derive(Clone, Debug)]
pub(crate) struct ChangeAttempt {
    pub(crate) change: Arc<Change>,
    /// An earlier attempt may have been committed.
    pub(crate) is_repeat: bool,
}

impl Weigh for ChangeAttempt {
    fn weight(&self) -> usize {
        match &*self.change {
            Change::EndTurn(turn) => {
                1 + turn.events.len() + turn.messages.len() + turn.activities.len()
            }
            Change::EndActivity(_) | Change::Send(_) | Change::Schedule(_) => 1,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ChangeBatches {
    statement: String,
    topics: Topics,
    shared: Arc<SharedBus>,
    grace: Duration,
}

impl ChangeBatches {
    pub(crate) fn new(
        schema: &str,
        topics: Topics,
        shared: Arc<SharedBus>,
        grace: Duration,
    ) -> Self {
        Self {
            statement: apply_changes::statement(schema),
            topics,
            shared,
            grace,
        }
    }

    /// The wakes of the whole batch.
    fn wakes(&self, row: &Row, attempts: &[ChangeAttempt], turns: &[bool]) -> Wakes {
        let mut wakes = mailbox_wakes(self.topics.schema(), row);
        let counts: Vec<i32> = list(row, "activity_counts");
        let tags: Vec<String> = list(row, "activity_tags");
        let has_session: Vec<bool> = list(row, "activity_has_session");
        let owners: Vec<Option<String>> = list(row, "activity_owners");
        let ends: Vec<Option<i64>> = list(row, "session_ends_us");
        let kinds = tags.into_iter().zip(has_session).zip(owners);
        for (((tag, has_session), owner), (count, ends_us)) in
            kinds.zip(counts.into_iter().zip(ends))
        {
            let kind = ActivityKind {
                tag,
                has_session,
                owner,
            };
            let activities = self.topics.wake_activities(&kind, count.unsigned_abs());
            let session_end = self
                .shared
                .wakes_at_session_end(&self.topics, &kind, ends_us);
            wakes = wakes.and(activities.into()).and(session_end);
        }
        let ended = attempts
            .iter()
            .filter_map(|attempt| match &*attempt.change {
                Change::EndTurn(turn) => Some(turn),
                _ => None,
            })
            .zip(turns)
            .filter(|(turn, is_held)| **is_held && turn.status.is_some());
        for (turn, _) in ended {
            wakes = wakes.and(self.topics.wake_instance(&turn.instance).into());
        }
        for due_us in list::<i64>(row, "due_us") {
            let after = Duration::from_micros(due_us.unsigned_abs()) + self.grace;
            let timer = self.topics.wake_orchestrations(1);
            wakes = wakes.and(self.shared.wakes_after(timer, after));
        }
        wakes
    }
}

/// The elements of an array; NULL is no elements.
pub(super) fn list<T: for<'a> tokio_postgres::types::FromSql<'a>>(
    row: &Row,
    column: &str,
) -> Vec<T> {
    row.get::<_, Option<_>>(column).unwrap_or_default()
}

/// The index in SQL of the last element of a column.
fn last_index<T>(column: &[T]) -> i32 {
    i32::try_from(column.len()).expect("a batch has a few hundred changes")
}

impl<'a> Columns<'a> {
    fn add(&mut self, attempt: &'a ChangeAttempt) {
        match &*attempt.change {
            Change::EndTurn(turn) => self.add_turn(turn, attempt.is_repeat),
            Change::EndActivity(end) => {
                self.f_activity.push(end.activity);
                self.f_token.push(end.token);
                self.f_is_repeat.push(attempt.is_repeat);
                if let Some(message) = &end.completion {
                    self.add_message(-last_index(&self.f_activity), message);
                }
            }
            Change::Send(message) => self.add_message(0, message),
            Change::Schedule(activity) => self.add_activity(0, activity),
        }
    }

    fn add_turn(&mut self, turn: &'a TurnEnd, is_repeat: bool) {
        self.t_instance.push(&turn.instance);
        let number = last_index(&self.t_instance);
        self.t_token.push(turn.token);
        self.t_is_repeat.push(is_repeat);
        self.t_execution.push(turn.execution);
        self.t_name.push(turn.name.as_deref());
        self.t_version.push(turn.version.as_deref());
        self.t_parent.push(turn.parent.as_deref());
        self.t_pinned.push(turn.pinned);
        self.t_status.push(turn.status.as_deref());
        self.t_output.push(turn.output.as_deref());
        let (status_change, custom_status) = match &turn.custom_status {
            None => (0, None),
            Some(CustomStatusChange::Set(status)) => (1, Some(&**status)),
            Some(CustomStatusChange::Clear) => (2, None),
        };
        self.t_status_change.push(status_change);
        self.t_custom_status.push(custom_status);
        self.t_last_event
            .push(turn.events.iter().map(|(id, _)| *id).max());
        self.t_cached_by.push(turn.cached_by);
        self.t_incarnation.push(turn.incarnation);
        for (id, data) in &turn.events {
            self.e_turn.push(number);
            self.e_number.push(*id);
            self.e_data.push(data);
        }
        for change in &turn.values {
            self.k_turn.push(number);
            self.k_key.push(change.key.as_deref());
            self.k_value.push(change.value.as_deref());
            self.k_updated_ms.push(change.updated_ms);
        }
        for message in &turn.messages {
            self.add_message(number, message);
        }
        for activity in &turn.activities {
            self.add_activity(number, activity);
        }
        for (instance, execution, activity) in &turn.cancelled {
            self.c_turn.push(number);
            self.c_instance.push(instance);
            self.c_execution.push(*execution);
            self.c_number.push(*activity);
        }
    }

    fn add_activity(&mut self, turn: i32, activity: &'a Activity) {
        self.a_turn.push(turn);
        self.a_instance.push(&activity.instance);
        self.a_execution.push(activity.execution);
        self.a_number.push(activity.number);
        self.a_session.push(activity.session.as_deref());
        self.a_tag.push(&activity.tag);
        self.a_item.push(&activity.item);
    }
}

#[derive(Debug)]
pub(crate) struct ChangeResult {
    /// Whether the lease was held; always for a change that needs none.
    pub(crate) is_held: bool,
    /// The counts of the whole batch: its statement counts them together.
    pub(crate) wakes: Wakes,
}

impl Batch for ChangeBatches {
    type Operation = ChangeAttempt;
    type Output = ChangeResult;

    const KIND: &'static str = apply_changes::KIND;

    fn run<'a>(
        &'a self,
        client: &'a Client,
        attempts: &'a [ChangeAttempt],
    ) -> BoxFuture<'a, Result<Vec<ChangeResult>, RunError>> {
        async move {
            let mut columns = Columns::default();
            for attempt in attempts {
                columns.add(attempt);
            }
            let parameters = columns.parameters();
            let rows = client.query_typed(&self.statement, &parameters).await?;
            let row = rows
                .first()
                .ok_or_else(|| RunError::Answer("no results".into()))?;
            let turns: Vec<bool> = row.get("turns");
            let activity_ends: Vec<bool> = row.get("activity_ends");
            let wakes = self.wakes(row, attempts, &turns).published_once();
            let (mut turns, mut activity_ends) = (turns.into_iter(), activity_ends.into_iter());
            let results = attempts.iter().map(|attempt| {
                let is_held = match &*attempt.change {
                    Change::EndTurn(_) => turns.next(),
                    Change::EndActivity(_) => activity_ends.next(),
                    Change::Send(_) | Change::Schedule(_) => Some(true),
                };
                Some(ChangeResult {
                    is_held: is_held?,
                    wakes: wakes.clone(),
                })
            });
            results
                .collect::<Option<_>>()
                .ok_or_else(|| RunError::Answer("too few results".into()))
        }
        .boxed()
    }
}
