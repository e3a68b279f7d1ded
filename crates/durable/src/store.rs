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
use wakeline_store::{
    Error, Migrations, Postgres,
    migrate::OpenError,
    postgres::{Batcher, Options as PoolOptions, quoted},
};

use self::{look::Looks, step::Steps, take::TakeInstances, take::TakeTasks};
use crate::{error::is_transient, hub::Hub, options::Options, topic::Topics};

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

/// Between two attempts in an outage, at first and at most.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(20);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone, Debug)]
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
    pub(crate) async fn open(url: &str, options: &Options, node: i64) -> Result<Self, OpenError> {
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
        Ok(Self {
            steps: Batcher::start(&postgres, steps, 2),
            instances: Batcher::start(&postgres, take_instances, 2),
            tasks: Batcher::start(&postgres, take_tasks, 2),
            looks: Batcher::start(&postgres, looks, 1),
            postgres,
            schema,
            hub,
            topics,
        })
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
}

/// Does it until it is done, refused, or `until` has come. The argument says whether an earlier
/// attempt may have been carried out although its answer was lost.
pub(crate) async fn ride_out<T, F>(
    until: Instant,
    attempt: impl FnMut(bool) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    ride_out_while(is_transient, until, attempt).await
}

/// The same for as long as the errors are such that `may_repeat`.
pub(crate) async fn ride_out_while<T, F>(
    may_repeat: impl Fn(&Error) -> bool,
    until: Instant,
    mut attempt: impl FnMut(bool) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut pause = FIRST_PAUSE;
    let mut is_again = false;
    loop {
        let error = match attempt(is_again).await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if !may_repeat(&error) || Instant::now() >= until {
            return Err(error);
        }
        is_again |= matches!(error, Error::OutcomeUnknown(_));
        tracing::debug!(%error, "the database is away; trying again");
        sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
