//! What operators change in a durable schema, without the workflow runtime: cancelling, deleting and
//! pruning instances. The writes are in `store/admin.rs`.

use std::{ops::AddAssign, sync::Arc, time::Duration};

use wakeline_bus::{Bus, Write};
use wakeline_store::{
    Error,
    migrate::OpenError,
    postgres::{Options as PoolOptions, Policy},
};
use wakeline_wake::{Engine, Limits};

use crate::{
    bus::{self, BusThread},
    store::{
        Store,
        admin::{DeleteRefusal, IS_ENDED_ROOT},
    },
    view::PruneCriteria,
};

/// How long a call is repeated during an outage.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(5);

/// Why a call of [`InstanceAdmin`] failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdminError {
    /// There is no instance with this id.
    #[error("there is no instance {0:?}")]
    UnknownInstance(String),
    /// The instance is deleted only with its parent.
    #[error("instance {instance:?} is a sub-orchestration of {parent:?}; delete that one")]
    SubOrchestration {
        /// The instance's id.
        instance: String,
        /// The id of its parent.
        parent: String,
    },
    /// This instance, or this descendant of it, is running.
    #[error("instance {0:?} is running; cancel it first, or force the deletion")]
    Running(String),
    /// This sub-orchestration was started while its parent was deleted.
    #[error("sub-orchestration {0:?} was started meanwhile; nothing was deleted: try again")]
    NewSubOrchestration(String),
    /// A statement failed.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<DeleteRefusal> for AdminError {
    fn from(refusal: DeleteRefusal) -> Self {
        match refusal {
            DeleteRefusal::Running(instance) => Self::Running(instance),
            DeleteRefusal::Orphan(instance) => Self::NewSubOrchestration(instance),
        }
    }
}

/// How much a call has deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletedCounts {
    /// Instances, sub-orchestrations included.
    pub instances: u64,
    /// Executions.
    pub executions: u64,
    /// Events of histories.
    pub events: u64,
    /// Queued messages and activities.
    pub queued: u64,
}

impl AddAssign for DeletedCounts {
    fn add_assign(&mut self, other: Self) {
        self.instances += other.instances;
        self.executions += other.executions;
        self.events += other.events;
        self.queued += other.queued;
    }
}

/// Cancels, deletes and prunes the instances of one durable schema. It runs no workflows; what it
/// changes wakes the processes that do. A call is repeated for five seconds during an outage, and
/// goes on when its future is dropped.
#[derive(Debug)]
pub struct InstanceAdmin {
    store: Arc<Store>,
    bus: Arc<Bus>,
    _thread: BusThread,
}

impl InstanceAdmin {
    /// Connects to the schema `schema` of the database at `url`. A schema that is missing or old is
    /// refused.
    pub async fn connect(url: &str, schema: &str, pool: &PoolOptions) -> Result<Self, OpenError> {
        let store = Store::open(url, pool, schema, Policy::Verify).await?;
        let engine = Engine::new(Limits::default());
        let connector = store.postgres.connector();
        let (bus, thread) = BusThread::start(connector, &engine, |_| std::future::ready(()))
            .map_err(|error| OpenError::Open(error.to_string()))?;
        Ok(Self {
            store,
            bus,
            _thread: thread,
        })
    }

    /// Requests that an instance ends with `reason` as its error; a runtime with its orchestration
    /// ends it. Nothing happens if it has ended already.
    pub async fn cancel(&self, instance: &str, reason: &str) -> Result<(), AdminError> {
        let cancel = self.store.cancel(instance, reason, OUTAGE_PATIENCE);
        self.commit(cancel).await
    }

    /// Deletes an instance that has no parent, and its descendants. If one of them is running, `force`
    /// is needed; an activity that runs is not stopped.
    pub async fn delete(&self, instance: &str, force: bool) -> Result<DeletedCounts, AdminError> {
        match self.store.parent(instance, OUTAGE_PATIENCE).await? {
            None => Err(AdminError::UnknownInstance(instance.to_owned())),
            Some(Some(parent)) => Err(AdminError::SubOrchestration {
                instance: instance.to_owned(),
                parent,
            }),
            Some(None) => self.delete_tree(instance, force).await,
        }
    }

    /// Deletes those of `ids` that have no parent and ended before a time (milliseconds since 1970),
    /// and their descendants.
    pub async fn delete_ended(
        &self,
        ids: &[String],
        before_ms: u64,
    ) -> Result<DeletedCounts, AdminError> {
        let limit = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        let roots = self.store.matching(
            "delete_instance_bulk",
            IS_ENDED_ROOT,
            Some(ids),
            Some(before_ms),
            limit,
            OUTAGE_PATIENCE,
        );
        let mut deleted = DeletedCounts::default();
        for root in roots.await? {
            deleted += self.delete_tree(&root, true).await?;
        }
        Ok(deleted)
    }

    /// Deletes finished executions of an instance that meet the criteria, never the current one.
    pub async fn prune(
        &self,
        instance: &str,
        criteria: PruneCriteria,
    ) -> Result<DeletedCounts, AdminError> {
        let prune = self
            .store
            .prune_executions(instance, criteria, OUTAGE_PATIENCE);
        let pruned = self.commit(prune).await?;
        pruned.ok_or_else(|| AdminError::UnknownInstance(instance.to_owned()))
    }

    /// Waits at most `timeout` until all wakes have been sent. Call it before the process ends: a wake
    /// that was not sent is found by the other processes only at their next fallback.
    pub async fn flush(&self, timeout: Duration) {
        bus::flush(&self.bus, timeout).await;
    }

    async fn delete_tree(&self, root: &str, force: bool) -> Result<DeletedCounts, AdminError> {
        let ids = self.store.tree(root, OUTAGE_PATIENCE).await?;
        let delete = self.store.delete_instances(ids, force, OUTAGE_PATIENCE);
        Ok(self.commit(delete).await??)
    }

    async fn commit<T: Send + 'static>(&self, write: Write<T>) -> Result<T, AdminError> {
        Ok(write.commit(&self.bus).await?)
    }
}
