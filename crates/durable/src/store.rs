//! One schema of a PostgreSQL database. Every method is one statement, so it is atomic.
//!
//! A read is a future: dropping it does nothing. A write is a [`Write`], which goes on when its
//! caller is gone. Both ride out an outage: they are repeated until a given time. A repeat of a
//! write is safe because the statements are: a lease is known by its token, and an `is_repeat` tells
//! a change of a batch that an earlier attempt may have been committed. After a repeat the whole door
//! is woken, because the wakes of the lost attempt are not known.

pub(crate) mod admin;
pub(crate) mod apply_changes;
#[cfg(feature = "provider")]
pub(crate) mod batches;
#[cfg(feature = "provider")]
pub(crate) mod changes;
#[cfg(feature = "provider")]
pub(crate) mod due;
#[cfg(feature = "provider")]
pub(crate) mod fetch;
#[cfg(feature = "provider")]
pub(crate) mod history;
#[cfg(feature = "provider")]
pub(crate) mod statements;
mod view;

use std::{future::Future, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use wakeline_bus::{Wakes, Write};
use wakeline_store::{
    Error, Migrations, Postgres,
    migrate::OpenError,
    postgres::{Options as PoolOptions, Policy, quoted},
};

use crate::bus::DOOR;

/// The tables and functions of a durable schema, as a provider applies them when it connects.
/// `@schema@` in the statements stands for the schema's name.
pub const MIGRATIONS: Migrations = Migrations {
    door: "durable",
    steps: &[concat!(
        include_str!("sql/001_tables.sql"),
        include_str!("sql/002_changes.sql"),
        include_str!("sql/003_fetch.sql"),
        include_str!("sql/004_leases.sql"),
        include_str!("sql/005_read_and_delete.sql"),
    )],
};

/// A value and its type.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The same for a write, which outlives its caller.
pub(crate) type OwnedParameter = (Box<dyn ToSql + Send + Sync>, Type);

pub(crate) fn owned(value: impl ToSql + Send + Sync + 'static, kind: Type) -> OwnedParameter {
    (Box::new(value), kind)
}

/// Between two attempts in an outage, at first and at most.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(20);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// PostgreSQL truncates longer names, so that two schemas could be one.
const MAX_NAME_BYTES: usize = 63;

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) postgres: Postgres,
    pub(crate) schema: String,
    quoted_schema: String,
}

impl Store {
    pub(crate) async fn open(
        url: &str,
        pool: &PoolOptions,
        schema: &str,
        policy: Policy,
    ) -> Result<Arc<Self>, OpenError> {
        if schema.is_empty() || schema.len() > MAX_NAME_BYTES || schema.contains('\0') {
            return Err(OpenError::Open(format!(
                "the schema {schema:?} must have a name of 1 to {MAX_NAME_BYTES} bytes without U+0000"
            )));
        }
        let migrations = &[MIGRATIONS];
        Ok(Arc::new(Self {
            postgres: Postgres::open_schema(url, pool, schema, policy, migrations).await?,
            schema: schema.to_owned(),
            quoted_schema: quoted(schema),
        }))
    }

    /// Runs a statement in which `@schema@` stands for the schema.
    pub(crate) async fn query(
        &self,
        kind: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Error> {
        let statement = statement.replace("@schema@", &self.quoted_schema);
        self.postgres.query(kind, &statement, parameters).await
    }

    /// A statement that may be repeated, tried until `until`; `wakes` reads its rows.
    pub(crate) fn write(
        self: &Arc<Self>,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<OwnedParameter>,
        until: Instant,
        wakes: impl FnOnce(&[Row]) -> Wakes + Send + 'static,
    ) -> Write<Vec<Row>> {
        let store = self.clone();
        let run = async move {
            let parameters: Vec<Parameter<'_>> = parameters
                .iter()
                .map(|(value, kind)| (&**value as _, kind.clone()))
                .collect();
            let attempt = |_| store.query(kind, statement, &parameters);
            retry_while(is_transient, until, attempt).await
        };
        write(run, |rows| wakes(rows))
    }

    /// The same for a statement that wakes nobody.
    pub(crate) fn silent_write(
        self: &Arc<Self>,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<OwnedParameter>,
        until: Instant,
    ) -> Write<Vec<Row>> {
        self.write(kind, statement, parameters, until, |_| Wakes::none())
    }
}

/// Whether a repeat may succeed. Trouble of the database itself is never permanent: the runtime fails
/// an orchestration for a permanent error.
pub(crate) fn is_transient(error: &Error) -> bool {
    match error {
        Error::Unavailable(_) | Error::Overloaded | Error::OutcomeUnknown(_) => true,
        // A serialization failure or a deadlock, after the store's own repeats.
        Error::Failed(text) => text.starts_with("40"),
    }
}

/// Repeats `attempt` during an outage, until `until`.
pub(crate) async fn retry<T, F>(until: Instant, mut attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let retried = retry_while(is_transient, until, |_| attempt()).await;
    retried.map(|retried| retried.value)
}

struct RetryResult<T> {
    value: T,
    /// An earlier attempt may have been committed although its answer was lost.
    is_repeat: bool,
}

/// Repeats `attempt` while its errors are such that `may_repeat`. Its argument says whether an earlier
/// attempt may have been committed; if so, an error means that the outcome is unknown.
async fn retry_while<T, F>(
    may_repeat: impl Fn(&Error) -> bool,
    until: Instant,
    mut attempt: impl FnMut(bool) -> F,
) -> Result<RetryResult<T>, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = FIRST_PAUSE;
    let mut is_repeat = false;
    loop {
        let error = match attempt(is_repeat).await {
            Ok(value) => return Ok(RetryResult { value, is_repeat }),
            Err(error) => error,
        };
        if !may_repeat(&error) || Instant::now() >= until {
            return Err(match error {
                Error::OutcomeUnknown(_) => error,
                _ if is_repeat => Error::OutcomeUnknown(error.to_string()),
                _ => error,
            });
        }
        is_repeat |= matches!(error, Error::OutcomeUnknown(_));
        tracing::debug!(%error, "the database is unavailable; trying again");
        sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The wakes of an attempt whose answer was lost are not known: then the door rechecks all waiters.
fn write<T: Send + 'static>(
    run: impl Future<Output = Result<RetryResult<T>, Error>> + Send + 'static,
    wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
) -> Write<T> {
    let wakes = |retried: &RetryResult<T>| {
        let lost = if retried.is_repeat {
            Wakes::whole_door()
        } else {
            Wakes::none()
        };
        wakes(&retried.value).and(lost)
    };
    Write::new(DOOR, run, wakes).map(|retried| retried.value)
}
