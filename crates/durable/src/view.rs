//! A read-only view of a durable schema for operators. It runs no workflows, waits for nothing and
//! changes nothing; its queries are in `store/view.rs`, and each returns a bounded list.

mod responses;

use std::{
    fmt,
    time::{Duration, Instant},
};

use tokio::sync::Mutex;
use tokio_postgres::Row;
use wakeline_store::{
    Error, Postgres,
    migrate::OpenError,
    postgres::{Options as PoolOptions, Policy, quoted},
};

pub use responses::{
    Execution, HistoryEvent, HistoryPage, Instance, InstanceCounts, InstanceDetail, InstancePage,
    InstanceQueue, KeyValue, QueueCounts, Status, Totals,
};

use crate::store::{MIGRATIONS, Parameter};

/// The number of rows of a page when the caller names none.
pub const DEFAULT_PAGE: u32 = 100;
/// The largest number of rows of a page.
pub const MAX_PAGE: u32 = 1_000;

/// After a failed attempt to open the database, calls fail with the same error for so long.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Why a call of [`View`] failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// There is no instance with this id.
    #[error("there is no instance {0:?}; a new one appears when a runtime has run its first turn")]
    UnknownInstance(String),
    /// The instance has no execution with this number.
    #[error("instance {instance:?} has no execution {execution}: it was pruned, or never existed")]
    UnknownExecution {
        /// The instance's id.
        instance: String,
        /// The execution's number.
        execution: u64,
    },
    /// [`Filter::after`] is not a page's `next`.
    #[error("{0:?} is not the `next` of a page of instances; pass that as `after`")]
    PageToken(String),
    /// The database cannot be reached; a later call tries again.
    #[error("the durable database cannot be opened: {0}")]
    Unavailable(String),
    /// The schema does not exist, or has another version.
    #[error("{0}")]
    Schema(String),
    /// A query failed.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Selects a page of instances. The default selects all of them, one to a page.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only instances in this state.
    pub status: Option<Status>,
    /// Only instances of the orchestration with exactly this name.
    pub name: Option<String>,
    /// The largest number of rows, from 1 to [`MAX_PAGE`]; a number outside is moved inside.
    pub limit: u32,
    /// [`InstancePage::next`] of the previous page; none for the first page.
    pub after: Option<String>,
}

/// Which finished executions may be pruned: those that meet all criteria. The current execution of an
/// instance never may.
#[derive(Clone, Copy, Debug, Default)]
pub struct PruneCriteria {
    /// Keep so many executions of each instance, the newest, the current one included.
    pub keep_last: Option<u32>,
    /// Only executions that ended before this time, in milliseconds since 1970.
    pub before_ms: Option<u64>,
}

/// The executions that may be pruned among the next instances by id.
#[derive(Clone, Debug)]
pub struct PrunablePage {
    /// The id of each instance that has any, and how many.
    pub executions: Vec<(String, u64)>,
    /// The number of instances that were examined, at most 5,000.
    pub instances: u64,
    /// The id to pass as `after` for the next page; none on the last page.
    pub next: Option<String>,
}

/// A read-only view of one durable schema. It connects at its first call, and again after an outage.
#[derive(Debug)]
pub struct View {
    url: Url,
    schema: String,
    pool: PoolOptions,
    connection: Mutex<Connection>,
}

struct Url(String);

impl fmt::Debug for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It may contain a password.
        out.write_str("…")
    }
}

#[derive(Debug, Default)]
struct Connection {
    postgres: Option<Postgres>,
    failure: Option<(Instant, ViewError)>,
}

impl View {
    /// A view of the schema `schema` of the database at `url`. Nothing connects yet.
    #[must_use]
    pub fn new(url: &str, schema: &str, pool: PoolOptions) -> Self {
        Self {
            url: Url(url.to_owned()),
            schema: schema.to_owned(),
            pool,
            connection: Mutex::default(),
        }
    }

    /// The schema's name.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Runs a statement in which `@schema@` stands for the schema.
    pub(crate) async fn query(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ViewError> {
        let statement = statement.replace("@schema@", &quoted(&self.schema));
        let postgres = self.open().await?;
        Ok(postgres
            .query("durable_view", &statement, parameters)
            .await?)
    }

    async fn open(&self) -> Result<Postgres, ViewError> {
        let mut connection = self.connection.lock().await;
        match (&connection.postgres, &connection.failure) {
            (Some(postgres), _) => Ok(postgres.clone()),
            (None, Some((when, error))) if when.elapsed() < RETRY_PAUSE => Err(error.clone()),
            _ => match self.connect().await {
                Ok(postgres) => Ok(connection.postgres.insert(postgres).clone()),
                Err(error) => {
                    connection.failure = Some((Instant::now(), error.clone()));
                    Err(error)
                }
            },
        }
    }

    async fn connect(&self) -> Result<Postgres, ViewError> {
        let migrations = &[MIGRATIONS];
        let schema = &self.schema;
        Postgres::open_schema(&self.url.0, &self.pool, schema, Policy::Verify, migrations)
            .await
            .map_err(|error| match error {
                OpenError::Behind { .. } => ViewError::Schema(format!(
                    "there is no durable schema {schema:?} of this version in the database; start \
                     a program that runs workflows in it, which creates or upgrades the schema"
                )),
                OpenError::Open(reason) => ViewError::Unavailable(reason),
                other => ViewError::Schema(other.to_string()),
            })
    }
}

/// Where a page of instances ended. Instances are ordered by creation time and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageToken {
    /// In microseconds since 1970.
    pub(crate) created_us: i64,
    pub(crate) id: String,
}

impl PageToken {
    pub(crate) fn parse(text: &str) -> Result<Self, ViewError> {
        let invalid = || ViewError::PageToken(text.to_owned());
        let (created_us, id) = text.split_once('.').ok_or_else(invalid)?;
        let created_us: i64 = created_us.parse().map_err(|_| invalid())?;
        // PostgreSQL has no later times, and no instance is older.
        let is_time = (0..1 << 57).contains(&created_us);
        if !is_time || id.contains('\0') {
            return Err(invalid());
        }
        let id = id.to_owned();
        Ok(Self { created_us, id })
    }
}

impl fmt::Display for PageToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.created_us, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_token_is_read_as_it_is_written() {
        let token = PageToken {
            created_us: 1_731_779_468_123_456,
            id: "order.7 ü".into(),
        };
        assert_eq!(PageToken::parse(&token.to_string()), Ok(token));
        for text in [
            "",
            "x",
            "12",
            ".id",
            "-1.id",
            "999999999999999999.id",
            "1.a\0",
        ] {
            let invalid = ViewError::PageToken(text.into());
            assert_eq!(PageToken::parse(text), Err(invalid));
        }
    }
}
