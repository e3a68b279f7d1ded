//! One schema of a PostgreSQL database: what is asked of it, each in one statement.

pub(crate) mod due;
pub(crate) mod look;
pub(crate) mod statements;
pub(crate) mod step;
pub(crate) mod take;
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
    look::Looks,
    step::{Step, Stepped, Steps, What},
    take::{TakeInstances, TakeTasks},
};
use crate::{
    error::is_transient,
    hub::Hub,
    options::Options,
    topic::{DOOR, Topics},
};

/// What makes a schema. Applied by [`crate::PostgresProvider::connect`]; `@schema@` stands for its name.
pub const MIGRATIONS: Migrations = Migrations {
    door: "durable",
    steps: &[concat!(
        include_str!("sql/001_tables.sql"),
        include_str!("sql/002_step.sql"),
        include_str!("sql/003_take.sql"),
        include_str!("sql/004_leases.sql"),
        include_str!("sql/005_read.sql"),
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
    pub(crate) hub: Arc<Hub>,
    pub(crate) topics: Topics,
    pub(crate) steps: Batcher<Steps>,
    pub(crate) instances: Batcher<TakeInstances>,
    pub(crate) tasks: Batcher<TakeTasks>,
    pub(crate) looks: Batcher<Looks>,
}

impl Store {
    /// `node` names this process' memory of histories.
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
        let hub = Hub::join(url, postgres.connector(), &options.long_poll)?;
        let schema: Arc<str> = quoted(&options.schema).into();
        let topics = Topics::new(&options.schema);
        let grace = options.long_poll.timer_grace;
        let steps = Steps::new(&schema, topics.clone(), hub.clone(), grace);
        let take_instances = TakeInstances::new(&schema, node);
        let take_tasks = TakeTasks::new(&schema);
        let looks = Looks::new(&schema);
        Ok(Arc::new(Self {
            steps: Batcher::start(&postgres, steps, 2),
            instances: Batcher::start(&postgres, take_instances, 2),
            tasks: Batcher::start(&postgres, take_tasks, 2),
            looks: Batcher::start(&postgres, looks, 1),
            postgres,
            schema,
            hub,
            topics,
        }))
    }

    /// A statement in which `@schema@` stands for the schema.
    pub(crate) async fn query(
        &self,
        kind: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Error> {
        let statement = statement.replace("@schema@", &self.schema);
        self.postgres.query(kind, &statement, parameters).await
    }

    /// A statement that may be done again, tried until `until`; `wakes` reads its answer.
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
            ride_out_while(is_transient, until, attempt).await
        };
        write(run, |rows| wakes(rows))
    }

    /// A step, tried until `until` as long as `may_repeat` says so. Whether its lease was held.
    pub(crate) fn step(
        &self,
        what: What,
        until: Instant,
        may_repeat: impl Fn(&Error) -> bool + Send + Sync + 'static,
    ) -> Write<bool> {
        let (steps, what) = (self.steps.clone(), Arc::new(what));
        let run = async move {
            let attempt = |is_again| {
                steps.submit(Step {
                    what: what.clone(),
                    is_again,
                })
            };
            ride_out_while(may_repeat, until, attempt).await
        };
        write(run, |stepped: &Stepped| stepped.wakes.clone()).map(|stepped| stepped.is_held)
    }
}

/// Does it until it is done, refused, or `until` has come.
pub(crate) async fn ride_out<T, F>(
    until: Instant,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let ridden = ride_out_while(is_transient, until, |_| attempt()).await;
    ridden.map(|ridden| ridden.value)
}

/// What an attempt came to, and whether an earlier one may have been carried out although its answer
/// was lost.
struct Ridden<T> {
    value: T,
    is_again: bool,
}

/// The same for as long as the errors are such that `may_repeat`. The argument says whether an earlier
/// attempt may have been carried out; if so, an error is that the outcome is unknown.
async fn ride_out_while<T, F>(
    may_repeat: impl Fn(&Error) -> bool,
    until: Instant,
    mut attempt: impl FnMut(bool) -> F,
) -> Result<Ridden<T>, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = FIRST_PAUSE;
    let mut is_again = false;
    loop {
        let error = match attempt(is_again).await {
            Ok(value) => return Ok(Ridden { value, is_again }),
            Err(error) => error,
        };
        if !may_repeat(&error) || Instant::now() >= until {
            return Err(match error {
                Error::OutcomeUnknown(_) => error,
                _ if is_again => Error::OutcomeUnknown(error.to_string()),
                _ => error,
            });
        }
        is_again |= matches!(error, Error::OutcomeUnknown(_));
        tracing::debug!(%error, "the database is away; trying again");
        sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A write that rides out an outage. If an attempt may have been carried out without an answer, its
/// wakes are not known: all look.
fn write<T: Send + 'static>(
    run: impl Future<Output = Result<Ridden<T>, Error>> + Send + 'static,
    wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
) -> Write<T> {
    let wakes = |ridden: &Ridden<T>| {
        let lost = if ridden.is_again {
            Wakes::whole_door()
        } else {
            Wakes::none()
        };
        wakes(&ridden.value).and(lost)
    };
    Write::new(DOOR, run, wakes).map(|ridden| ridden.value)
}
