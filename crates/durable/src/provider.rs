//! The provider as the runtime sees it.

mod fetch;
mod write;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use duroxide::{
    Event, SystemStats,
    providers::{
        DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin,
        ProviderError, ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, WorkItem,
    },
};
use tokio::time::Instant;
use tokio_postgres::{Row, types::Type};
use wakeline_bus::{Wakes, Write};
use wakeline_store::migrate::OpenError;

use crate::{
    cache::Cache,
    error::explain,
    item::{self, number, text_of, unsigned},
    lease::Leases,
    options::Options,
    quiet::Quiet,
    store::{
        OwnedParameter, Parameter, Store, look::Look, look::Looked, owned, ride_out, statements,
        take::micros,
    },
};

/// A provider on one schema of a PostgreSQL database. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct PostgresProvider {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<Store>,
    pub(crate) options: Options,
    pub(crate) cache: Cache,
    /// Names this process' memory of histories in the database.
    pub(crate) node: i64,
    pub(crate) leases: Leases,
    pub(crate) orchestrations_quiet: Quiet,
    pub(crate) tasks_quiet: Quiet,
    sessions: Sessions,
}

/// Whether a runtime has sessions at all: without any there is nothing to renew.
#[derive(Debug, Default)]
struct Sessions {
    claims: AtomicU64,
    /// By owners: how many claims there were when they had none.
    none_at: Mutex<HashMap<String, u64>>,
}

impl Sessions {
    fn are_none(&self, owners: &str) -> bool {
        let none_at = self.none_at.lock().unwrap_or_else(PoisonError::into_inner);
        none_at.get(owners) == Some(&self.claims.load(Ordering::SeqCst))
    }

    fn found_none(&self, owners: String, claims: u64) {
        let mut none_at = self.none_at.lock().unwrap_or_else(PoisonError::into_inner);
        if none_at.len() > 1_000 {
            none_at.clear();
        }
        none_at.insert(owners, claims);
    }
}

impl PostgresProvider {
    /// On the database that `url` names, in the schema `durable`.
    pub async fn connect(url: &str) -> Result<Self, OpenError> {
        Self::connect_with(url, Options::default()).await
    }

    /// The same with a schema, a pool and a way to wait of one's own.
    pub async fn connect_with(url: &str, options: Options) -> Result<Self, OpenError> {
        options.check()?;
        let node = rand::random();
        let store = Store::open(url, &options, node).await?;
        Ok(Self {
            inner: Arc::new(Inner {
                store,
                cache: Cache::new(options.history_cache_bytes),
                node,
                leases: Leases::default(),
                orchestrations_quiet: Quiet::default(),
                tasks_quiet: Quiet::default(),
                sessions: Sessions::default(),
                options,
            }),
        })
    }

    /// How many dispatchers and clients of this process wait on this database now, in all schemas.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.inner.store.hub.engine.held()
    }

    pub(crate) fn patience(&self) -> Instant {
        Instant::now() + self.inner.options.outage_patience
    }

    /// A statement that changes nothing.
    pub(crate) async fn ask(
        &self,
        operation: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, ProviderError> {
        let store = &self.inner.store;
        ride_out(self.patience(), || {
            store.query(operation, statement, parameters)
        })
        .await
        .map_err(|error| explain(operation, &error))
    }

    /// Done, and its waiters woken, even if the runtime drops its future meanwhile.
    pub(crate) async fn commit<T: Send + 'static>(
        &self,
        operation: &str,
        write: Write<T>,
    ) -> Result<T, ProviderError> {
        write
            .commit(&self.inner.store.hub.bus)
            .await
            .map_err(|error| explain(operation, &error))
    }

    /// A statement that changes the same when done twice, and makes nothing ready that anyone waits
    /// for.
    pub(crate) fn silent_write(
        &self,
        operation: &'static str,
        statement: &'static str,
        parameters: Vec<OwnedParameter>,
    ) -> Write<Vec<Row>> {
        let store = &self.inner.store;
        store.write(operation, statement, parameters, self.patience(), |_| {
            Wakes::none()
        })
    }

    async fn look(&self, operation: &str, look: Look) -> Result<Looked, ProviderError> {
        let looks = &self.inner.store.looks;
        ride_out(self.patience(), || looks.submit(look.clone()))
            .await
            .map_err(|error| explain(operation, &error))
    }

    /// The history of the latest execution. What is known is not read again.
    pub(crate) async fn history(
        &self,
        operation: &str,
        instance: &str,
    ) -> Result<Vec<Event>, ProviderError> {
        let cache = &self.inner.cache;
        let known = cache.edition(instance);
        let look = Look {
            instance: instance.to_owned(),
            known,
            wants_history: true,
        };
        let mut looked = self.look(operation, look.clone()).await?;
        if looked.continues {
            let known_events = known.and_then(|known| cache.get(instance, known));
            match (known_events, looked.edition, known) {
                (Some(events), Some(edition), Some(known)) => {
                    let new = parsed(operation, &looked.events)?;
                    let bytes = size(&looked.events);
                    cache.append(instance, known, edition, new.clone(), bytes);
                    return Ok([events, new].concat());
                }
                // It has been driven out meanwhile.
                _ => {
                    let look = Look {
                        known: None,
                        ..look
                    };
                    looked = self.look(operation, look).await?;
                }
            }
        }
        let events = parsed(operation, &looked.events)?;
        if let Some(edition) = looked.edition {
            cache.put(instance, edition, events.clone(), size(&looked.events));
        }
        Ok(events)
    }
}

fn parsed(operation: &str, texts: &[String]) -> Result<Vec<Event>, ProviderError> {
    item::read_events(texts).map_err(|message| ProviderError::permanent(operation, message))
}

pub(crate) fn size(texts: &[String]) -> usize {
    texts.iter().map(String::len).sum()
}

#[async_trait::async_trait]
impl Provider for PostgresProvider {
    fn name(&self) -> &str {
        "wakeline-postgres"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        self.fetch_orchestration(lock_timeout, poll_timeout, filter)
            .await
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let turn = write::EndedTurn {
            execution: number(execution_id),
            events: history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled: cancelled_activities,
        };
        self.end_turn(lock_token, turn).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.abandon_instance(lock_token, delay, !ignore_attempt)
            .await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.history("read", instance).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        let operation = "read_with_execution";
        let rows = self
            .ask(
                operation,
                statements::READ_WITH_EXECUTION,
                &[(&instance, Type::TEXT), (&number(execution_id), Type::INT8)],
            )
            .await?;
        let texts: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        parsed(operation, &texts)
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let operation = "append_with_execution";
        let events = item::events(operation, &new_events)?;
        let (numbers, data): (Vec<i64>, Vec<String>) = events.into_iter().unzip();
        let parameters = vec![
            owned(instance.to_owned(), Type::TEXT),
            owned(number(execution_id), Type::INT8),
            owned(numbers, Type::INT8_ARRAY),
            owned(data, Type::TEXT_ARRAY),
        ];
        let store = &self.inner.store;
        // It may be the event that ends it.
        let wake = store.topics.wake_instance(instance);
        let append = store.write(
            operation,
            statements::APPEND_WITH_EXECUTION,
            parameters,
            self.patience(),
            |_| wake.into(),
        );
        self.commit(operation, append).await.map(drop)
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.schedule(&item).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        self.fetch_work(lock_timeout, poll_timeout, session, tag_filter)
            .await
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        self.end_activity(token, completion).await
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.prolong_task(token, extend_for).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let sessions = &self.inner.sessions;
        let owners = owner_ids.join("\0");
        if owner_ids.is_empty() || sessions.are_none(&owners) {
            return Ok(0);
        }
        let claims = sessions.claims.load(Ordering::SeqCst);
        let operation = "renew_session_lock";
        let owner_ids: Vec<String> = owner_ids.iter().map(|id| (*id).to_owned()).collect();
        let parameters = vec![
            owned(owner_ids, Type::TEXT_ARRAY),
            owned(micros(extend_for), Type::INT8),
            owned(micros(idle_timeout), Type::INT8),
        ];
        let renew = self.silent_write(operation, statements::RENEW_SESSION_LOCK, parameters);
        let rows = self.commit(operation, renew).await?;
        let count = unsigned(rows[0].get(0));
        if count == 0 {
            sessions.found_none(owners, claims);
        }
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    async fn cleanup_orphaned_sessions(
        &self,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.inner.leases.tidy();
        let operation = "cleanup_orphaned_sessions";
        let cleanup =
            self.silent_write(operation, statements::CLEANUP_ORPHANED_SESSIONS, Vec::new());
        let rows = self.commit(operation, cleanup).await?;
        Ok(usize::try_from(rows[0].get::<_, i64>(0)).unwrap_or(0))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.abandon_task(token, delay, !ignore_attempt).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.prolong_instance(token, extend_for).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.send(&item, delay).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let look = Look {
            instance: instance.to_owned(),
            known: None,
            wants_history: false,
        };
        let looked = self.look("get_custom_status", look).await?;
        let version = unsigned(looked.custom_status_version);
        Ok((version > last_seen_version).then(|| (looked.custom_status.map(text_of), version)))
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        let rows = self
            .ask(
                "get_kv_value",
                statements::GET_KV_VALUE,
                &[(&instance, Type::TEXT), (&key, Type::TEXT)],
            )
            .await?;
        Ok(rows
            .first()
            .and_then(|row| row.get::<_, Option<Vec<u8>>>(0))
            .map(text_of))
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        let rows = self
            .ask(
                "get_kv_all_values",
                statements::GET_KV_ALL_VALUES,
                &[(&instance, Type::TEXT)],
            )
            .await?;
        Ok(rows
            .iter()
            .map(|row| (row.get(0), text_of(row.get(1))))
            .collect())
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        self.instance_stats(instance).await
    }
}
