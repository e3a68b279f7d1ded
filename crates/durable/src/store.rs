//! One schema of a PostgreSQL database. Every method is one statement, so it is atomic.
//!
//! A read is a future: dropping it does nothing. A write is a [`Write`], which goes on when its
//! caller is gone. Both ride out an outage: they are repeated until a given time. A repeat of a
//! write is safe because the statements are: a lease is known by its token, and an `is_repeat` tells
//! [`Change`]s that an earlier attempt may have been committed. After a repeat the whole door is
//! woken, because the wakes of the lost attempt are not known.

pub(crate) mod changes;
pub(crate) mod due;
pub(crate) mod fetch;
pub(crate) mod history;
pub(crate) mod statements;
pub(crate) mod view;

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
    postgres::{Batcher, Options as PoolOptions, quoted},
};

use self::{
    changes::{Change, ChangeAttempt, ChangeBatches, ChangeResult},
    fetch::{ActivityFetches, InstanceFetches},
    history::HistoryReads,
};
use crate::{
    error::is_transient,
    options::Options,
    shared_bus::SharedBus,
    topic::{DOOR, Topics},
};

/// The tables and functions of a durable schema, as [`crate::PostgresProvider::connect`] applies
/// them. `@schema@` in the statements stands for the schema's name.
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

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) postgres: Postgres,
    /// Quoted.
    pub(crate) schema: Arc<str>,
    pub(crate) shared: Arc<SharedBus>,
    pub(crate) topics: Topics,
    pub(crate) changes: Batcher<ChangeBatches>,
    pub(crate) instances: Batcher<InstanceFetches>,
    pub(crate) activities: Batcher<ActivityFetches>,
    pub(crate) histories: Batcher<HistoryReads>,
}

impl Store {
    /// `node` names this process' cache of histories.
    pub(crate) async fn open(
        url: &str,
        options: &Options,
        node: i64,
    ) -> Result<Arc<Self>, OpenError> {
        let pool = PoolOptions {
            connections: options.pool_size.max(1),
            connect_timeout: options.connect_timeout,
            statement_timeout: options.statement_timeout,
            max_batch: 200,
            ..PoolOptions::default()
        };
        let migrations = &[MIGRATIONS];
        let postgres =
            Postgres::open_schema(url, &pool, &options.schema, options.migrations, migrations)
                .await?;
        let shared = SharedBus::join(url, postgres.connector(), &options.long_poll)?;
        let schema: Arc<str> = quoted(&options.schema).into();
        let topics = Topics::new(&options.schema);
        let grace = options.long_poll.timer_grace;
        let changes = ChangeBatches::new(&schema, topics.clone(), shared.clone(), grace);
        Ok(Arc::new(Self {
            changes: Batcher::start(&postgres, changes, 2),
            instances: Batcher::start(&postgres, InstanceFetches::new(&schema, node), 2),
            activities: Batcher::start(&postgres, ActivityFetches::new(&schema), 2),
            histories: Batcher::start(&postgres, HistoryReads::new(&schema), 1),
            postgres,
            schema,
            shared,
            topics,
        }))
    }

    /// Runs a statement in which `@schema@` stands for the schema.
    pub(crate) async fn query(
        &self,
        kind: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Error> {
        let statement = statement.replace("@schema@", &self.schema);
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

    /// Applies a change; it is tried until `until` while `may_repeat` allows it. The value says
    /// whether the change's lease was held; without the lease nothing is changed.
    pub(crate) fn apply(
        &self,
        change: Change,
        until: Instant,
        may_repeat: impl Fn(&Error) -> bool + Send + Sync + 'static,
    ) -> Write<bool> {
        let (changes, change) = (self.changes.clone(), Arc::new(change));
        let run = async move {
            let attempt = |is_repeat| {
                changes.submit(ChangeAttempt {
                    change: change.clone(),
                    is_repeat,
                })
            };
            retry_while(may_repeat, until, attempt).await
        };
        write(run, |result: &ChangeResult| result.wakes.clone()).map(|result| result.is_held)
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
