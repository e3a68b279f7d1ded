//! A schema as an operator looks at it: nothing here runs workflows, waits, listens, or changes the
//! schema.

mod shape;

use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use wakeline_store::{
    Error, Postgres,
    migrate::OpenError,
    postgres::{Options as PoolOptions, Policy, quoted},
};

pub use shape::{
    Counts, Detail, Execution, HistoryPage, Instance, InstancePage, InstanceQueue, KeyValue,
    Queues, Recorded, Status, Totals,
};

use crate::store::{MIGRATIONS, view as sql};

/// Rows of a page that does not say, and at most.
pub const DEFAULT_PAGE: u32 = 100;
pub const MAX_PAGE: u32 = 1_000;

/// After a failed attempt to open the database callers are told the same for so long.
const PAUSE: Duration = Duration::from_secs(1);

/// Why there is nothing to show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    #[error("there is no instance {0:?}; one that no runtime has begun is not known yet")]
    UnknownInstance(String),
    #[error("instance {instance:?} has no execution {execution}: it was pruned, or never was")]
    UnknownExecution { instance: String, execution: u64 },
    #[error("{0:?} is no place in the list; take `next` of the page before")]
    Place(String),
    #[error("the durable database cannot be opened: {0}")]
    Away(String),
    /// The schema cannot be read as it is.
    #[error("{0}")]
    Schema(String),
    #[error(transparent)]
    Store(#[from] Error),
}

/// Which instances a page shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub status: Option<Status>,
    /// The orchestration's name, exactly.
    pub name: Option<String>,
    /// At most so many; from 1 to [`MAX_PAGE`].
    pub limit: u32,
    /// [`InstancePage::next`] of the page before.
    pub after: Option<String>,
}

/// Old executions that may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prunable {
    /// Not the last so many of an instance, the current one among them.
    pub keep_last: Option<u32>,
    /// Only those that ended before this, in milliseconds since 1970.
    pub before_ms: Option<u64>,
}

/// What a look for prunable executions found.
#[derive(Clone, Debug)]
pub struct Looked {
    /// By instance: how many.
    pub executions: Vec<(String, u64)>,
    /// How many instances were looked at.
    pub instances: u64,
    /// Where to go on; nothing: these were the last.
    pub next: Option<String>,
}

/// See the module. It connects when it is first asked, and again after an outage.
#[derive(Debug)]
pub struct View {
    url: Url,
    schema: String,
    pool: PoolOptions,
    state: Mutex<State>,
}

struct Url(String);

impl std::fmt::Debug for Url {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // It may hold a password.
        out.write_str("…")
    }
}

#[derive(Debug, Default)]
struct State {
    postgres: Option<Postgres>,
    failed: Option<(Instant, ViewError)>,
}

impl View {
    #[must_use]
    pub fn new(url: &str, schema: &str, pool: PoolOptions) -> Self {
        Self {
            url: Url(url.to_owned()),
            schema: schema.to_owned(),
            pool,
            state: Mutex::default(),
        }
    }

    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// How many there are of everything.
    pub async fn totals(&self) -> Result<Totals, ViewError> {
        let schema = self.open().await?;
        Ok(schema.totals(&self.schema).await?)
    }

    /// The newest first. With a filter a page may be short, or even empty, although there is a
    /// `next`: one call looks at so many instances and no more.
    pub async fn instances(&self, filter: &Filter) -> Result<InstancePage, ViewError> {
        let after = filter.after.as_deref().map(Place::parse).transpose()?;
        if filter
            .name
            .as_deref()
            .is_some_and(|name| name.contains('\0'))
        {
            return Ok(InstancePage::default());
        }
        let limit = filter.limit.clamp(1, MAX_PAGE);
        let schema = self.open().await?;
        let mut found = schema.instances(filter, limit, after.as_ref()).await?;
        let shown = usize::try_from(limit).unwrap_or(usize::MAX);
        let next = if found.instances.len() > shown {
            found.instances.truncate(shown);
            found.instances.last().map(|(place, _)| place.to_string())
        } else {
            found.goes_on_after.map(|place| place.to_string())
        };
        let instances = found.instances.into_iter().map(|(_, row)| row).collect();
        Ok(InstancePage { instances, next })
    }

    pub async fn instance(&self, id: &str) -> Result<Detail, ViewError> {
        let unknown = || ViewError::UnknownInstance(id.to_owned());
        if id.contains('\0') {
            return Err(unknown());
        }
        let schema = self.open().await?;
        schema.instance(id).await?.ok_or_else(unknown)
    }

    /// Whether something lies in its mailbox: also an instance that was not begun yet has one.
    pub async fn has_mail(&self, id: &str) -> Result<bool, ViewError> {
        if id.contains('\0') {
            return Ok(false);
        }
        Ok(self.open().await?.has_mail(id).await?)
    }

    /// Events in order, those after event `after`. The current execution, if none is named.
    pub async fn history(
        &self,
        id: &str,
        execution: Option<u64>,
        after: u64,
        limit: u32,
    ) -> Result<HistoryPage, ViewError> {
        let unknown = || ViewError::UnknownInstance(id.to_owned());
        if id.contains('\0') {
            return Err(unknown());
        }
        let schema = self.open().await?;
        let (current, is_there) = schema.execution(id, execution).await?.ok_or_else(unknown)?;
        let execution = execution.unwrap_or(current);
        if !is_there {
            return Err(ViewError::UnknownExecution {
                instance: id.to_owned(),
                execution,
            });
        }
        let (events, is_more) = schema
            .events(id, execution, after, limit.clamp(1, MAX_PAGE))
            .await?;
        let next = events.last().map(|event| event.number);
        Ok(HistoryPage {
            instance: id.to_owned(),
            execution,
            events,
            next: next.filter(|_| is_more),
        })
    }

    /// Executions that may be pruned, among some thousands of instances after `after` by id.
    pub async fn prunable(&self, what: Prunable, after: &str) -> Result<Looked, ViewError> {
        Ok(self.open().await?.prunable(what, after).await?)
    }

    /// The same of one instance.
    pub async fn prunable_of(&self, what: Prunable, id: &str) -> Result<u64, ViewError> {
        Ok(self.open().await?.prunable_of(what, id).await?)
    }

    /// Instances without a parent that ended before a time, those that ended first first.
    pub async fn ended(&self, before_ms: u64, limit: u32) -> Result<Vec<String>, ViewError> {
        Ok(self.open().await?.ended(before_ms, limit).await?)
    }

    /// How many [`Self::ended`] would name.
    pub async fn count_ended(&self, before_ms: u64, limit: Option<u32>) -> Result<u64, ViewError> {
        Ok(self.open().await?.count_ended(before_ms, limit).await?)
    }

    async fn open(&self) -> Result<sql::Schema, ViewError> {
        let mut state = self.state.lock().await;
        let postgres = match (&state.postgres, &state.failed) {
            (Some(postgres), _) => postgres.clone(),
            (None, Some((when, error))) if when.elapsed() < PAUSE => return Err(error.clone()),
            _ => match self.connect().await {
                Ok(postgres) => state.postgres.insert(postgres).clone(),
                Err(error) => {
                    state.failed = Some((Instant::now(), error.clone()));
                    return Err(error);
                }
            },
        };
        Ok(sql::Schema::new(postgres, quoted(&self.schema)))
    }

    async fn connect(&self) -> Result<Postgres, ViewError> {
        let migrations = &[MIGRATIONS];
        let schema = &self.schema;
        Postgres::open_schema(&self.url.0, &self.pool, schema, Policy::Verify, migrations)
            .await
            .map_err(|error| match error {
                OpenError::Behind { .. } => ViewError::Schema(format!(
                    "there is no durable schema {schema:?} of this version in the database; \
                     a program that uses it makes it and brings it up to date"
                )),
                OpenError::Open(reason) => ViewError::Away(reason),
                other => ViewError::Schema(other.to_string()),
            })
    }
}

/// Where in the list of instances, which is ordered by when they were made, and by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// In microseconds since 1970.
    pub(crate) made_at: i64,
    pub(crate) id: String,
}

impl Place {
    fn parse(text: &str) -> Result<Self, ViewError> {
        let bad = || ViewError::Place(text.to_owned());
        let (made_at, id) = text.split_once('.').ok_or_else(bad)?;
        let made_at: i64 = made_at.parse().map_err(|_| bad())?;
        // Beyond it PostgreSQL has no time; before it nothing was made.
        let is_time = (0..1 << 57).contains(&made_at);
        if !is_time || id.contains('\0') {
            return Err(bad());
        }
        let id = id.to_owned();
        Ok(Self { made_at, id })
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}", self.made_at, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let place = Place {
            made_at: 1_731_779_468_123_456,
            id: "order.7 ü".into(),
        };
        assert_eq!(Place::parse(&place.to_string()), Ok(place));
        for text in [
            "",
            "x",
            "12",
            ".id",
            "-1.id",
            "999999999999999999.id",
            "1.a\0",
        ] {
            assert_eq!(Place::parse(text), Err(ViewError::Place(text.into())));
        }
    }
}
