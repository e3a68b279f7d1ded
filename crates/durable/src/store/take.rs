//! What dispatchers take: see `sql/003_take.sql`.

use std::time::Duration;

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row, types::Type};
use uuid::Uuid;
use wakeline_store::postgres::{Batch, RunError, Weigh};

/// What somebody who asked gets.
#[derive(Debug)]
pub(crate) enum Taken<T> {
    Something(T),
    /// Nothing; when something is due, and when somebody's lease or session ends.
    Nothing {
        due: Option<Duration>,
        lapse: Option<Duration>,
    },
}

fn nothing<T>(row: &Row) -> Taken<T> {
    let time = |column| {
        let micros: Option<i64> = row.get(column);
        micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    };
    Taken::Nothing {
        due: time("due_us"),
        lapse: time("lapse_us"),
    }
}

/// Microseconds for PostgreSQL.
pub(crate) fn micros(time: Duration) -> i64 {
    // A thousand years: what is longer would not fit a timestamp.
    const LONGEST: u128 = 1_000 * 365 * 86_400 * 1_000_000;
    i64::try_from(time.as_micros().min(LONGEST)).unwrap_or(0)
}

#[derive(Clone, Debug)]
pub(crate) struct WantInstance {
    pub(crate) lease: Duration,
    /// The versions that can be replayed.
    pub(crate) versions: Option<(i64, i64)>,
    pub(crate) token: Uuid,
}

impl Weigh for WantInstance {}

#[derive(Debug)]
pub(crate) struct TakenInstance {
    pub(crate) token: Uuid,
    pub(crate) instance: String,
    /// Unknown until its first turn is acknowledged.
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) execution: Option<i64>,
    pub(crate) incarnation: Option<i64>,
    pub(crate) last_event: Option<i64>,
    pub(crate) edits: Option<i64>,
    pub(crate) attempts: i32,
    pub(crate) items: Vec<String>,
    /// None: this process has it.
    pub(crate) history: Option<Vec<String>>,
    pub(crate) is_cached: bool,
    pub(crate) values: Vec<(String, Vec<u8>, i64)>,
}

#[derive(Debug)]
pub(crate) struct TakeInstances {
    statement: String,
    node: i64,
}

impl TakeInstances {
    pub(crate) fn new(schema: &str, node: i64) -> Self {
        Self {
            statement: format!("SELECT * FROM {schema}.take_instances($1, $2, $3, $4, $5)"),
            node,
        }
    }
}

impl Batch for TakeInstances {
    type Operation = WantInstance;
    type Output = Taken<TakenInstance>;

    const KIND: &'static str = "durable_take_instances";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [WantInstance],
    ) -> BoxFuture<'a, Result<Vec<Self::Output>, RunError>> {
        async move {
            let leases: Vec<i64> = operations.iter().map(|want| micros(want.lease)).collect();
            let low: Vec<Option<i64>> = operations.iter().map(|w| Some(w.versions?.0)).collect();
            let high: Vec<Option<i64>> = operations.iter().map(|w| Some(w.versions?.1)).collect();
            let tokens: Vec<Uuid> = operations.iter().map(|want| want.token).collect();
            let rows = client
                .query_typed(
                    &self.statement,
                    &[
                        (&self.node, Type::INT8),
                        (&leases, Type::INT8_ARRAY),
                        (&low, Type::INT8_ARRAY),
                        (&high, Type::INT8_ARRAY),
                        (&tokens, Type::UUID_ARRAY),
                    ],
                )
                .await?;
            let taken = rows.iter().zip(operations).map(|(row, want)| {
                let Some(instance) = row.get("instance") else {
                    return nothing(row);
                };
                let keys: Vec<String> = row.get::<_, Option<_>>("kv_keys").unwrap_or_default();
                let values: Vec<Vec<u8>> = row.get::<_, Option<_>>("kv_values").unwrap_or_default();
                let times: Vec<i64> = row.get::<_, Option<_>>("kv_ms").unwrap_or_default();
                let values = keys.into_iter().zip(values).zip(times);
                Taken::Something(TakenInstance {
                    token: want.token,
                    instance,
                    name: row.get("name"),
                    version: row.get("version"),
                    execution: row.get("execution"),
                    incarnation: row.get("incarnation"),
                    last_event: row.get("last_event"),
                    edits: row.get("edits"),
                    attempts: row.get("attempts"),
                    items: row.get("items"),
                    history: row.get("history"),
                    is_cached: row.get("is_cached"),
                    values: values.map(|((key, value), ms)| (key, value, ms)).collect(),
                })
            });
            Ok(taken.collect())
        }
        .boxed()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct WantTask {
    pub(crate) lease: Duration,
    /// For whom sessions are held, and for how long.
    pub(crate) session: Option<(String, Duration)>,
    pub(crate) token: Uuid,
    /// As they are stored. None: every tag.
    pub(crate) tags: Vec<String>,
}

impl Weigh for WantTask {}

#[derive(Debug)]
pub(crate) struct TakenTask {
    pub(crate) token: Uuid,
    pub(crate) id: i64,
    pub(crate) item: String,
    pub(crate) attempts: i32,
    pub(crate) instance: String,
    pub(crate) execution: i64,
    pub(crate) activity: i64,
}

#[derive(Debug)]
pub(crate) struct TakeTasks {
    statement: String,
}

impl TakeTasks {
    pub(crate) fn new(schema: &str) -> Self {
        Self {
            statement: format!("SELECT * FROM {schema}.take_tasks($1, $2, $3, $4, $5, $6)"),
        }
    }
}

impl Batch for TakeTasks {
    type Operation = WantTask;
    type Output = Taken<TakenTask>;

    const KIND: &'static str = "durable_take_tasks";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [WantTask],
    ) -> BoxFuture<'a, Result<Vec<Self::Output>, RunError>> {
        async move {
            let leases: Vec<i64> = operations.iter().map(|want| micros(want.lease)).collect();
            let sessions = || operations.iter().map(|want| want.session.as_ref());
            let owners: Vec<Option<&str>> =
                sessions().map(|s| s.map(|(owner, _)| &**owner)).collect();
            let session_us: Vec<Option<i64>> = sessions()
                .map(|s| s.map(|(_, time)| micros(*time)))
                .collect();
            let tokens: Vec<Uuid> = operations.iter().map(|want| want.token).collect();
            let tags = (1_i32..)
                .zip(operations)
                .flat_map(|(caller, want)| want.tags.iter().map(move |tag| (caller, &**tag)));
            let (callers, tags): (Vec<i32>, Vec<&str>) = tags.unzip();
            let rows = client
                .query_typed(
                    &self.statement,
                    &[
                        (&leases, Type::INT8_ARRAY),
                        (&owners, Type::TEXT_ARRAY),
                        (&session_us, Type::INT8_ARRAY),
                        (&tokens, Type::UUID_ARRAY),
                        (&callers, Type::INT4_ARRAY),
                        (&tags, Type::TEXT_ARRAY),
                    ],
                )
                .await?;
            let taken = rows.iter().zip(operations).map(|(row, want)| {
                let Some(id) = row.get("id") else {
                    return nothing(row);
                };
                Taken::Something(TakenTask {
                    token: want.token,
                    id,
                    item: row.get("item"),
                    attempts: row.get("attempts"),
                    instance: row.get("instance"),
                    execution: row.get("execution"),
                    activity: row.get("activity"),
                })
            });
            Ok(taken.collect())
        }
        .boxed()
    }
}
