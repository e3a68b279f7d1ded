//! What is written: see `sql/002_step.sql`.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row, types::Type};
use uuid::Uuid;
use wakeline_bus::Wakes;
use wakeline_store::postgres::{Batch, RunError, Weigh};

use crate::{
    hub::Hub,
    topic::{TaskKind, Topics},
};

/// A message for an orchestration.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    pub(crate) instance: String,
    pub(crate) item: String,
    pub(crate) after_us: Option<i64>,
    pub(crate) at_ms: Option<i64>,
}

/// An activity for a worker.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) instance: String,
    pub(crate) execution: i64,
    pub(crate) activity: i64,
    pub(crate) session: Option<String>,
    pub(crate) tag: String,
    pub(crate) item: String,
}

#[derive(Clone, Debug)]
pub(crate) enum CustomStatus {
    Set(Vec<u8>),
    Clear,
}

/// A value that is set or removed; without a key, all are removed.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) key: Option<String>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) updated_ms: i64,
}

/// The end of an orchestration's turn.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) instance: String,
    pub(crate) token: Uuid,
    pub(crate) execution: i64,
    /// Both or none: with them the instance is made if it is new.
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) pinned: Option<i64>,
    pub(crate) status: Option<String>,
    pub(crate) output: Option<Vec<u8>>,
    pub(crate) custom: Option<CustomStatus>,
    /// The process that has the whole history afterwards.
    pub(crate) cached_by: Option<i64>,
    /// For an instance that is new.
    pub(crate) incarnation: i64,
    pub(crate) events: Vec<(i64, String)>,
    pub(crate) changes: Vec<Change>,
    pub(crate) letters: Vec<Letter>,
    pub(crate) tasks: Vec<Task>,
    /// Activities that are called off: instance, execution, activity.
    pub(crate) cancelled: Vec<(String, i64, i64)>,
}

/// The end of an activity.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    pub(crate) task: i64,
    pub(crate) token: Uuid,
    pub(crate) completion: Option<Letter>,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Turn(Box<Turn>),
    Finish(Finish),
    Send(Letter),
    Schedule(Task),
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) what: Arc<What>,
    /// Whether it may have been done already.
    pub(crate) is_again: bool,
}

impl Weigh for Step {
    fn weight(&self) -> usize {
        match &*self.what {
            What::Turn(turn) => 1 + turn.events.len() + turn.letters.len() + turn.tasks.len(),
            What::Finish(_) | What::Send(_) | What::Schedule(_) => 1,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Steps {
    statement: String,
    topics: Topics,
    hub: Arc<Hub>,
    grace: Duration,
}

impl Steps {
    pub(crate) fn new(schema: &str, topics: Topics, hub: Arc<Hub>, grace: Duration) -> Self {
        let parameters: Vec<String> = (1..=Columns::TYPES.len())
            .map(|n| format!("${n}"))
            .collect();
        Self {
            statement: format!("SELECT * FROM {schema}.step({})", parameters.join(", ")),
            topics,
            hub,
            grace,
        }
    }

    /// Whom the whole batch concerns.
    fn wakes(&self, row: &Row, operations: &[Step], turns: &[bool]) -> Wakes {
        let mut wakes = Wakes::none();
        let ready: i32 = row.get("ready");
        if ready > 0 {
            let orchestrations = self.topics.wake_orchestrations(ready.unsigned_abs());
            wakes = wakes.and(orchestrations.into());
        }
        let counts: Vec<i32> = row.get::<_, Option<_>>("task_counts").unwrap_or_default();
        let tags: Vec<String> = row.get::<_, Option<_>>("task_tags").unwrap_or_default();
        let sessions: Vec<bool> = row.get::<_, Option<_>>("task_sessions").unwrap_or_default();
        let owners: Vec<Option<String>> =
            row.get::<_, Option<_>>("task_owners").unwrap_or_default();
        let ends: Vec<Option<i64>> = row.get::<_, Option<_>>("task_ends").unwrap_or_default();
        for ((((tag, has_session), owner), count), ends) in tags
            .into_iter()
            .zip(sessions)
            .zip(owners)
            .zip(counts)
            .zip(ends)
        {
            let kind = TaskKind {
                tag,
                has_session,
                owner,
            };
            let tasks = self.topics.wake_tasks(&kind, count.unsigned_abs());
            let session_end = self.hub.wakes_at_session_end(&self.topics, &kind, ends);
            wakes = wakes.and(tasks.into()).and(session_end);
        }
        let ended = operations
            .iter()
            .filter_map(|step| match &*step.what {
                What::Turn(turn) => Some(turn),
                _ => None,
            })
            .zip(turns)
            .filter(|(turn, is_held)| **is_held && turn.status.is_some());
        for (turn, _) in ended {
            wakes = wakes.and(self.topics.wake_instance(&turn.instance).into());
        }
        let dues: Vec<i64> = row.get::<_, Option<_>>("dues").unwrap_or_default();
        for due in dues {
            let after = Duration::from_micros(due.unsigned_abs()) + self.grace;
            let timer = self.topics.wake_orchestrations(1);
            wakes = wakes.and(self.hub.wakes_after(timer, after));
        }
        wakes
    }
}

/// What the statement takes, one list per column.
#[derive(Default)]
struct Columns<'a> {
    t_instance: Vec<&'a str>,
    t_token: Vec<Uuid>,
    t_again: Vec<bool>,
    t_execution: Vec<i64>,
    t_name: Vec<Option<&'a str>>,
    t_version: Vec<Option<&'a str>>,
    t_parent: Vec<Option<&'a str>>,
    t_pinned: Vec<Option<i64>>,
    t_status: Vec<Option<&'a str>>,
    t_output: Vec<Option<&'a [u8]>>,
    t_says: Vec<i16>,
    t_custom: Vec<Option<&'a [u8]>>,
    t_last: Vec<Option<i64>>,
    t_cached: Vec<Option<i64>>,
    t_incarnation: Vec<i64>,
    e_turn: Vec<i32>,
    e_number: Vec<i64>,
    e_data: Vec<&'a str>,
    k_turn: Vec<i32>,
    k_key: Vec<Option<&'a str>>,
    k_value: Vec<Option<&'a [u8]>>,
    k_ms: Vec<i64>,
    f_task: Vec<i64>,
    f_token: Vec<Uuid>,
    f_again: Vec<bool>,
    m_by: Vec<i32>,
    m_instance: Vec<&'a str>,
    m_item: Vec<&'a str>,
    m_after: Vec<Option<i64>>,
    m_at: Vec<Option<i64>>,
    w_by: Vec<i32>,
    w_instance: Vec<&'a str>,
    w_execution: Vec<i64>,
    w_activity: Vec<i64>,
    w_session: Vec<Option<&'a str>>,
    w_tag: Vec<&'a str>,
    w_item: Vec<&'a str>,
    c_turn: Vec<i32>,
    c_instance: Vec<&'a str>,
    c_execution: Vec<i64>,
    c_activity: Vec<i64>,
}

fn place(index: usize) -> i32 {
    i32::try_from(index).expect("a batch has a few hundred operations")
}

impl<'a> Columns<'a> {
    const TYPES: [Type; 41] = [
        Type::TEXT_ARRAY,
        Type::UUID_ARRAY,
        Type::BOOL_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::BYTEA_ARRAY,
        Type::INT2_ARRAY,
        Type::BYTEA_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT4_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::BYTEA_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
        Type::BOOL_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT4_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
    ];

    fn add(&mut self, step: &'a Step) {
        match &*step.what {
            What::Turn(turn) => self.add_turn(turn, step.is_again),
            What::Finish(finish) => {
                self.f_task.push(finish.task);
                self.f_token.push(finish.token);
                self.f_again.push(step.is_again);
                if let Some(letter) = &finish.completion {
                    self.add_letter(-place(self.f_task.len()), letter);
                }
            }
            What::Send(letter) => self.add_letter(0, letter),
            What::Schedule(task) => self.add_task(0, task),
        }
    }

    fn add_turn(&mut self, turn: &'a Turn, is_again: bool) {
        self.t_instance.push(&turn.instance);
        let number = place(self.t_instance.len());
        self.t_token.push(turn.token);
        self.t_again.push(is_again);
        self.t_execution.push(turn.execution);
        self.t_name.push(turn.name.as_deref());
        self.t_version.push(turn.version.as_deref());
        self.t_parent.push(turn.parent.as_deref());
        self.t_pinned.push(turn.pinned);
        self.t_status.push(turn.status.as_deref());
        self.t_output.push(turn.output.as_deref());
        let (says, custom) = match &turn.custom {
            None => (0, None),
            Some(CustomStatus::Set(status)) => (1, Some(&**status)),
            Some(CustomStatus::Clear) => (2, None),
        };
        self.t_says.push(says);
        self.t_custom.push(custom);
        self.t_last
            .push(turn.events.iter().map(|(id, _)| *id).max());
        self.t_cached.push(turn.cached_by);
        self.t_incarnation.push(turn.incarnation);
        for (id, data) in &turn.events {
            self.e_turn.push(number);
            self.e_number.push(*id);
            self.e_data.push(data);
        }
        for change in &turn.changes {
            self.k_turn.push(number);
            self.k_key.push(change.key.as_deref());
            self.k_value.push(change.value.as_deref());
            self.k_ms.push(change.updated_ms);
        }
        for letter in &turn.letters {
            self.add_letter(number, letter);
        }
        for task in &turn.tasks {
            self.add_task(number, task);
        }
        for (instance, execution, activity) in &turn.cancelled {
            self.c_turn.push(number);
            self.c_instance.push(instance);
            self.c_execution.push(*execution);
            self.c_activity.push(*activity);
        }
    }

    fn add_letter(&mut self, by: i32, letter: &'a Letter) {
        self.m_by.push(by);
        self.m_instance.push(&letter.instance);
        self.m_item.push(&letter.item);
        self.m_after.push(letter.after_us);
        self.m_at.push(letter.at_ms);
    }

    fn add_task(&mut self, by: i32, task: &'a Task) {
        self.w_by.push(by);
        self.w_instance.push(&task.instance);
        self.w_execution.push(task.execution);
        self.w_activity.push(task.activity);
        self.w_session.push(task.session.as_deref());
        self.w_tag.push(&task.tag);
        self.w_item.push(&task.item);
    }

    async fn run(&self, client: &Client, statement: &str) -> Result<Row, tokio_postgres::Error> {
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 41] = [
            &self.t_instance,
            &self.t_token,
            &self.t_again,
            &self.t_execution,
            &self.t_name,
            &self.t_version,
            &self.t_parent,
            &self.t_pinned,
            &self.t_status,
            &self.t_output,
            &self.t_says,
            &self.t_custom,
            &self.t_last,
            &self.t_cached,
            &self.t_incarnation,
            &self.e_turn,
            &self.e_number,
            &self.e_data,
            &self.k_turn,
            &self.k_key,
            &self.k_value,
            &self.k_ms,
            &self.f_task,
            &self.f_token,
            &self.f_again,
            &self.m_by,
            &self.m_instance,
            &self.m_item,
            &self.m_after,
            &self.m_at,
            &self.w_by,
            &self.w_instance,
            &self.w_execution,
            &self.w_activity,
            &self.w_session,
            &self.w_tag,
            &self.w_item,
            &self.c_turn,
            &self.c_instance,
            &self.c_execution,
            &self.c_activity,
        ];
        let typed: Vec<_> = values.into_iter().zip(Self::TYPES).collect();
        let mut rows = client.query_typed(statement, &typed).await?;
        Ok(rows.remove(0))
    }
}

/// What a step came to.
#[derive(Debug)]
pub(crate) struct Stepped {
    /// Whether the lease was held, where there is one.
    pub(crate) is_held: bool,
    /// The first step of a batch has those of the whole batch: the statement counts them together.
    pub(crate) wakes: Wakes,
}

impl Batch for Steps {
    type Operation = Step;
    type Output = Stepped;

    const KIND: &'static str = "durable_step";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Step],
    ) -> BoxFuture<'a, Result<Vec<Stepped>, RunError>> {
        async move {
            let mut columns = Columns::default();
            for operation in operations {
                columns.add(operation);
            }
            let row = columns.run(client, &self.statement).await?;
            let turns: Vec<bool> = row.get("turns");
            let finishes: Vec<bool> = row.get("finishes");
            let mut wakes = self.wakes(&row, operations, &turns);
            let (mut turns, mut finishes) = (turns.into_iter(), finishes.into_iter());
            let stepped = operations.iter().map(|step| {
                let is_held = match &*step.what {
                    What::Turn(_) => turns.next(),
                    What::Finish(_) => finishes.next(),
                    What::Send(_) | What::Schedule(_) => Some(true),
                };
                Some(Stepped {
                    is_held: is_held?,
                    wakes: std::mem::take(&mut wakes),
                })
            });
            stepped
                .collect::<Option<_>>()
                .ok_or_else(|| RunError::Answer("too few results".into()))
        }
        .boxed()
    }
}
