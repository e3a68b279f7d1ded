//! Fetches that many dispatchers share: see `sql/003_fetch.sql`.

use std::time::Duration;

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, Row, types::Type};
use uuid::Uuid;
use wakeline_store::postgres::{Batch, RunError, Weigh};

use super::changes::list;

#[derive(Debug)]
pub(crate) enum FetchResult<T> {
    Item(T),
    /// Nothing can be fetched before one of these: an item is due, or a lease or session expires.
    Nothing {
        due: Option<Duration>,
        expiry: Option<Duration>,
    },
}

fn nothing<T>(row: &Row) -> FetchResult<T> {
    let time = |column| {
        let micros: Option<i64> = row.get(column);
        micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
    };
    FetchResult::Nothing {
        due: time("due_us"),
        expiry: time("expiry_us"),
    }
}

/// Microseconds for PostgreSQL.
pub(crate) fn micros(time: Duration) -> i64 {
    // A thousand years: a longer time would not fit a timestamp.
    const LONGEST: u128 = 1_000 * 365 * 86_400 * 1_000_000;
    i64::try_from(time.as_micros().min(LONGEST)).unwrap_or(0)
}

#[derive(Clone, Debug)]
pub(crate) struct FetchInstance {
    pub(crate) lease: Duration,
    /// The lowest and the highest duroxide version that the dispatcher can replay.
    pub(crate) versions: Option<(i64, i64)>,
    pub(crate) token: Uuid,
}

impl Weigh for FetchInstance {}

#[derive(Debug)]
pub(crate) struct LeasedInstance {
    pub(crate) token: Uuid,
    pub(crate) instance: String,
    /// None until its first turn is acknowledged.
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) execution: Option<i64>,
    pub(crate) incarnation: Option<i64>,
    pub(crate) last_event: Option<i64>,
    pub(crate) edits: Option<i64>,
    pub(crate) attempts: i32,
    pub(crate) items: Vec<String>,
    /// None if this process caches it.
    pub(crate) history: Option<Vec<String>>,
    pub(crate) is_cached: bool,
    pub(crate) values: Vec<(String, Vec<u8>, i64)>,
}

#[derive(Debug)]
pub(crate) struct InstanceFetches {
    statement: String,
    node: i64,
}

impl InstanceFetches {
    pub(crate) fn new(schema: &str, node: i64) -> Self {
        Self {
            statement: format!("SELECT * FROM {schema}.fetch_instances($1, $2, $3, $4, $5)"),
            node,
        }
    }
}

impl Batch for InstanceFetches {
    type Operation = FetchInstance;
    type Output = FetchResult<LeasedInstance>;

    const KIND: &'static str = "durable_fetch_instances";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        fetches: &'a [FetchInstance],
    ) -> BoxFuture<'a, Result<Vec<Self::Output>, RunError>> {
        async move {
            let leases: Vec<i64> = fetches.iter().map(|fetch| micros(fetch.lease)).collect();
            let low: Vec<Option<i64>> = fetches.iter().map(|f| Some(f.versions?.0)).collect();
            let high: Vec<Option<i64>> = fetches.iter().map(|f| Some(f.versions?.1)).collect();
            let tokens: Vec<Uuid> = fetches.iter().map(|fetch| fetch.token).collect();
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
            let results = rows.iter().zip(fetches).map(|(row, fetch)| {
                let Some(instance) = row.get("instance") else {
                    return nothing(row);
                };
                let keys: Vec<String> = list(row, "kv_keys");
                let values: Vec<Vec<u8>> = list(row, "kv_values");
                let times: Vec<i64> = list(row, "kv_ms");
                let values = keys.into_iter().zip(values).zip(times);
                FetchResult::Item(LeasedInstance {
                    token: fetch.token,
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
            Ok(results.collect())
        }
        .boxed()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FetchActivity {
    pub(crate) lease: Duration,
    /// The owner of sessions, and how long it gets the session of the activity.
    pub(crate) session: Option<(String, Duration)>,
    pub(crate) token: Uuid,
    /// As they are stored; empty: every tag.
    pub(crate) tags: Vec<String>,
}

impl Weigh for FetchActivity {}

#[derive(Debug)]
pub(crate) struct LeasedActivity {
    pub(crate) token: Uuid,
    pub(crate) id: i64,
    pub(crate) item: String,
    pub(crate) attempts: i32,
    pub(crate) instance: String,
    pub(crate) execution: i64,
    pub(crate) number: i64,
}

#[derive(Debug)]
pub(crate) struct ActivityFetches {
    statement: String,
}

impl ActivityFetches {
    pub(crate) fn new(schema: &str) -> Self {
        Self {
            statement: format!("SELECT * FROM {schema}.fetch_activities($1, $2, $3, $4, $5, $6)"),
        }
    }
}

impl Batch for ActivityFetches {
    type Operation = FetchActivity;
    type Output = FetchResult<LeasedActivity>;

    const KIND: &'static str = "durable_fetch_activities";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        fetches: &'a [FetchActivity],
    ) -> BoxFuture<'a, Result<Vec<Self::Output>, RunError>> {
        async move {
            let leases: Vec<i64> = fetches.iter().map(|fetch| micros(fetch.lease)).collect();
            let sessions = || fetches.iter().map(|fetch| fetch.session.as_ref());
            let owners: Vec<Option<&str>> =
                sessions().map(|s| s.map(|(owner, _)| &**owner)).collect();
            let session_us: Vec<Option<i64>> = sessions()
                .map(|s| s.map(|(_, time)| micros(*time)))
                .collect();
            let tokens: Vec<Uuid> = fetches.iter().map(|fetch| fetch.token).collect();
            let tags = (1_i32..)
                .zip(fetches)
                .flat_map(|(caller, fetch)| fetch.tags.iter().map(move |tag| (caller, &**tag)));
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
            let results = rows.iter().zip(fetches).map(|(row, fetch)| {
                let Some(id) = row.get("id") else {
                    return nothing(row);
                };
                FetchResult::Item(LeasedActivity {
                    token: fetch.token,
                    id,
                    item: row.get("item"),
                    attempts: row.get("attempts"),
                    instance: row.get("instance"),
                    execution: row.get("execution"),
                    number: row.get("number"),
                })
            });
            Ok(results.collect())
        }
        .boxed()
    }
}
