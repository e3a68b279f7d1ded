//! The provider, and what its calls share.

mod admin;
pub(crate) mod cache;
mod calls;
mod empty_polls;
mod error;
mod fetch;
mod held_leases;
mod hold;
mod item;
mod lease;
mod options;
pub(crate) mod shared_bus;
pub(crate) mod topics;
mod wait;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use duroxide::{Event, providers::ProviderError};
use tokio::time::Instant;
use tokio_postgres::{Row, types::Type};
use wakeline_bus::Write;
use wakeline_store::{migrate::OpenError, postgres};

pub use self::options::{LongPollConfig, Options};
use self::{
    cache::{CacheUpdate, HistoryCache, HistoryVersion},
    empty_polls::EmptyPolls,
    error::provider_error,
    held_leases::{FetchedHistory, Leases},
    shared_bus::SharedBus,
    topics::Topics,
};
use crate::store::{
    OwnedParameter, Parameter, Store,
    batches::Batches,
    history::{HistoryRead, StoredHistory},
    retry,
};

/// Operations per statement at most.
const MAX_BATCH: usize = 200;

/// A duroxide provider on one schema of a PostgreSQL database. Cheap to clone; clones share
/// everything.
///
/// * **Atomic**: each call is one statement, and the bulk calls are one per instance.
/// * **Repeated** by the runtime: a call that ends a lease fails, because the first one has ended it; a
///   renewal or a deletion changes nothing more; a message or an activity is sent twice, which the
///   runtime recognises by its id, except for an external event. The repeats that the provider makes
///   during an outage do nothing twice.
/// * **Dropped**: a write goes on and wakes its waiters; a fetch releases what it has leased.
#[derive(Clone, Debug)]
pub struct PostgresProvider {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<Store>,
    pub(crate) batches: Batches,
    pub(crate) shared: Arc<SharedBus>,
    pub(crate) topics: Topics,
    pub(crate) options: Options,
    pub(crate) cache: HistoryCache,
    /// Names this process' cache of histories in the database.
    pub(crate) node: i64,
    pub(crate) leases: Leases,
    pub(crate) empty_orchestration_polls: EmptyPolls,
    pub(crate) empty_activity_polls: EmptyPolls,
    sessions: Sessions,
}

/// Whether the workers of a runtime have any sessions; without any there is nothing to renew.
#[derive(Debug, Default)]
struct Sessions {
    claims: AtomicU64,
    /// By owners: how many claims there were when the owners had no session.
    none_at: Mutex<HashMap<String, u64>>,
}

impl Sessions {
    fn are_none(&self, owners: &str) -> bool {
        let none_at = self.none_at.lock().unwrap_or_else(PoisonError::into_inner);
        none_at.get(owners) == Some(&self.claims.load(Ordering::SeqCst))
    }

    fn remember_none(&self, owners: String, claims: u64) {
        let mut none_at = self.none_at.lock().unwrap_or_else(PoisonError::into_inner);
        if none_at.len() > 1_000 {
            none_at.clear();
        }
        none_at.insert(owners, claims);
    }
}

impl PostgresProvider {
    /// Connects to the database at `url` with the default [`Options`]: in the schema `durable`, which
    /// is created if it does not exist.
    pub async fn connect(url: &str) -> Result<Self, OpenError> {
        Self::connect_with(url, Options::default()).await
    }

    /// Connects to the database at `url` with other [`Options`].
    pub async fn connect_with(url: &str, options: Options) -> Result<Self, OpenError> {
        let pool = postgres::Options {
            connections: options.pool_size.max(1),
            connect_timeout: options.connect_timeout,
            statement_timeout: options.statement_timeout,
            max_batch: MAX_BATCH,
            ..postgres::Options::default()
        };
        let store = Store::open(url, &pool, &options.schema, options.migrations).await?;
        let shared = SharedBus::join(url, store.postgres.connector(), &options.long_poll)?;
        let topics = Topics::new(&options.schema);
        let node = rand::random();
        let grace = options.long_poll.timer_grace;
        Ok(Self {
            inner: Arc::new(Inner {
                batches: Batches::start(&store, &shared, &topics, grace, node),
                store,
                shared,
                topics,
                cache: HistoryCache::new(options.history_cache_bytes),
                node,
                leases: Leases::default(),
                empty_orchestration_polls: EmptyPolls::default(),
                empty_activity_polls: EmptyPolls::default(),
                sessions: Sessions::default(),
                options,
            }),
        })
    }

    /// The number of dispatchers and clients of this process that wait on this database now, in all
    /// its schemas.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner.shared.engine.held()
    }

    /// Until when a call without a lease is repeated during an outage.
    pub(crate) fn retry_until(&self) -> Instant {
        Instant::now() + self.inner.options.outage_patience
    }

    /// Runs a statement that changes nothing.
    pub(crate) async fn query(
        &self,
        operation: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        let store = &self.inner.store;
        retry(self.retry_until(), || {
            store.query(operation, statement, parameters)
        })
        .await
        .map_err(|error| provider_error(operation, &error))
    }

    /// The same with one text as its only parameter.
    pub(crate) async fn query_by(
        &self,
        operation: &'static str,
        statement: &str,
        text: &str,
    ) -> Result<Vec<Row>, ProviderError> {
        self.query(operation, statement, &[(&text, Type::TEXT)])
            .await
    }

    /// Commits and wakes, even if the runtime drops its future meanwhile.
    pub(crate) async fn commit<T: Send + 'static>(
        &self,
        operation: &str,
        write: Write<T>,
    ) -> Result<T, ProviderError> {
        write
            .commit(&self.inner.shared.bus)
            .await
            .map_err(|error| provider_error(operation, &error))
    }

    /// A statement that changes nothing more when it is repeated, and wakes nobody.
    fn silent_write(
        &self,
        operation: &'static str,
        statement: &'static str,
        parameters: Vec<OwnedParameter>,
    ) -> Write<Vec<Row>> {
        let until = self.retry_until();
        let store = &self.inner.store;
        store.silent_write(operation, statement, parameters, until)
    }

    async fn read_stored(
        &self,
        operation: &str,
        read: HistoryRead,
    ) -> Result<StoredHistory, ProviderError> {
        let histories = &self.inner.batches.histories;
        retry(self.retry_until(), || histories.submit(read.clone()))
            .await
            .map_err(|error| provider_error(operation, &error))
    }

    /// The history of the latest execution. Events that are cached are not read again.
    pub(crate) async fn history(
        &self,
        operation: &str,
        instance: &str,
    ) -> Result<Vec<Event>, ProviderError> {
        let cache = &self.inner.cache;
        let cached = cache.version(instance);
        let read = HistoryRead {
            instance: instance.to_owned(),
            cached,
            with_history: true,
        };
        let mut stored = self.read_stored(operation, read.clone()).await?;
        if stored.continues_cached {
            let cached_events = cached.and_then(|version| cache.get(instance, version));
            if let (Some(events), Some(after), Some(before)) =
                (cached_events, stored.version, cached)
            {
                let new = parsed(operation, &stored.events)?;
                let bytes = size(&stored.events);
                cache.append(instance, before, after, new.clone(), bytes);
                return Ok([events, new].concat());
            }
            // The history was evicted meanwhile.
            let cached = None;
            stored = self
                .read_stored(operation, HistoryRead { cached, ..read })
                .await?;
        }
        let events = parsed(operation, &stored.events)?;
        if let Some(version) = stored.version {
            cache.put(instance, version, events.clone(), size(&stored.events));
        }
        Ok(events)
    }

    /// What a turn does to the cached history of its instance.
    fn cache_update(
        &self,
        instance: &str,
        fetched: FetchedHistory,
        is_named: bool,
        turn: HistoryVersion,
    ) -> CacheUpdate {
        let inner = &self.inner;
        match fetched {
            _ if inner.options.history_cache_bytes == 0 => CacheUpdate::Evict,
            FetchedHistory::New if is_named => CacheUpdate::Put(turn),
            FetchedHistory::Version(before) if turn.execution > before.execution => {
                let (incarnation, edits) = (before.incarnation, before.edits);
                CacheUpdate::Put(HistoryVersion {
                    incarnation,
                    edits,
                    ..turn
                })
            }
            FetchedHistory::Version(before)
                if turn.execution == before.execution
                    && inner.cache.version(instance) == Some(before) =>
            {
                let last_event = turn.last_event.max(before.last_event);
                let after = HistoryVersion {
                    last_event,
                    ..before
                };
                CacheUpdate::Append { before, after }
            }
            _ => CacheUpdate::Evict,
        }
    }
}

fn parsed(operation: &str, texts: &[String]) -> Result<Vec<Event>, ProviderError> {
    item::read_events(texts).map_err(|message| ProviderError::permanent(operation, message))
}

fn size(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}
