//! The provider's management calls.

use std::time::Duration;

use duroxide::{
    Event,
    providers::{
        DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, Provider,
        ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
    },
};
use tokio_postgres::{Row, types::Type};

use super::{PostgresProvider, error::provider_error};
use crate::{
    admin::DeletedCounts,
    row::{count, number, text_of, unsigned},
    store::{
        Parameter,
        admin::{DeleteRefusal, IS_ENDED_ROOT},
        statements,
    },
    view::PruneCriteria,
};

/// Instances that a bulk call handles without a limit in its filter.
const DEFAULT_LIMIT: u32 = 1_000;

fn names(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.get("id")).collect()
}

fn not_found(operation: &str, instance: &str) -> ProviderError {
    ProviderError::permanent(operation, format!("Instance {instance} not found"))
}

fn size(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}

fn delete_result(deleted: DeletedCounts) -> DeleteInstanceResult {
    DeleteInstanceResult {
        instances_deleted: deleted.instances,
        executions_deleted: deleted.executions,
        events_deleted: deleted.events,
        queue_messages_deleted: deleted.queued,
    }
}

#[async_trait::async_trait]
impl ProviderAdmin for PostgresProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        let rows = self
            .query("list_instances", statements::LIST_INSTANCES, &[])
            .await?;
        Ok(names(&rows))
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let rows = self
            .query_by(
                "list_instances_by_status",
                statements::LIST_INSTANCES_BY_STATUS,
                status,
            )
            .await?;
        Ok(names(&rows))
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let rows = self
            .query_by("list_executions", statements::LIST_EXECUTIONS, instance)
            .await?;
        Ok(rows.iter().map(|row| unsigned(row.get("number"))).collect())
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.read_with_execution(instance, execution_id).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.history("read_history", instance).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        let rows = self
            .query_by(
                "latest_execution_id",
                statements::LATEST_EXECUTION_ID,
                instance,
            )
            .await?;
        Ok(unsigned(rows[0].get("number")))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let operation = "get_instance_info";
        let rows = self
            .query_by(operation, statements::GET_INSTANCE_INFO, instance)
            .await?;
        let row = rows.first().ok_or_else(|| not_found(operation, instance))?;
        let status: Option<String> = row.get("status");
        Ok(InstanceInfo {
            instance_id: row.get("id"),
            orchestration_name: row.get("name"),
            orchestration_version: row.get("version"),
            current_execution_id: count(row, "execution"),
            status: status.unwrap_or_else(|| "Unknown".into()),
            output: row.get::<_, Option<Vec<u8>>>("output").map(text_of),
            created_at: count(row, "created"),
            updated_at: count(row, "updated"),
            parent_instance_id: row.get("parent"),
        })
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let operation = "get_execution_info";
        let parameters: [Parameter<'_>; 2] =
            [(&instance, Type::TEXT), (&number(execution_id), Type::INT8)];
        let rows = self
            .query(operation, statements::GET_EXECUTION_INFO, &parameters)
            .await?;
        let row = rows.first().ok_or_else(|| {
            let message = format!("Execution {execution_id} not found for instance {instance}");
            ProviderError::permanent(operation, message)
        })?;
        Ok(ExecutionInfo {
            execution_id: count(row, "number"),
            status: row.get("status"),
            output: row.get::<_, Option<Vec<u8>>>("output").map(text_of),
            started_at: count(row, "started"),
            completed_at: row.get::<_, Option<i64>>("completed").map(unsigned),
            event_count: size(row.get("events")),
        })
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        let rows = self
            .query("get_system_metrics", statements::GET_SYSTEM_METRICS, &[])
            .await?;
        let row = &rows[0];
        Ok(SystemMetrics {
            total_instances: count(row, "instances"),
            total_executions: count(row, "executions"),
            running_instances: count(row, "running"),
            completed_instances: count(row, "completed"),
            failed_instances: count(row, "failed"),
            total_events: count(row, "events"),
        })
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        let rows = self
            .query("get_queue_depths", statements::GET_QUEUE_DEPTHS, &[])
            .await?;
        Ok(QueueDepths {
            orchestrator_queue: size(rows[0].get("messages")),
            worker_queue: size(rows[0].get("activities")),
            // Timers are messages: they count in the orchestrator queue.
            timer_queue: 0,
        })
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        let inner = &self.inner;
        let children = inner.store.children(instance_id, self.patience());
        children
            .await
            .map_err(|error| provider_error("list_children", &error))
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        let operation = "get_parent_id";
        let parent = self.inner.store.parent(instance_id, self.patience()).await;
        parent
            .map_err(|error| provider_error(operation, &error))?
            .ok_or_else(|| not_found(operation, instance_id))
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let tree = self.inner.store.tree(instance_id, self.patience()).await;
        Ok(InstanceTree {
            root_id: instance_id.to_owned(),
            all_ids: tree.map_err(|error| provider_error("get_instance_tree", &error))?,
        })
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let operation = "delete_instances_atomic";
        if ids.is_empty() {
            return Ok(DeleteInstanceResult::default());
        }
        let (inner, deleted_ids) = (self.inner.clone(), ids.to_vec());
        let patience = self.patience();
        let delete = inner.store.delete_instances(ids.to_vec(), force, patience);
        let delete = delete.map(move |deleted| {
            for id in &deleted_ids {
                inner.cache.evict(id);
            }
            deleted
        });
        match self.commit(operation, delete).await? {
            Ok(deleted) => Ok(delete_result(deleted)),
            Err(refusal) => {
                let message = match refusal {
                    DeleteRefusal::Running(running) => format!(
                        "Instance {running} is still running. Use force=true to delete anyway, or cancel first."
                    ),
                    DeleteRefusal::Orphan(orphan) => format!(
                        "Cannot delete: the child {orphan} would be left behind. Read the tree of instances again and retry."
                    ),
                };
                Err(ProviderError::permanent(operation, message))
            }
        }
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let roots = self
            .matching("delete_instance_bulk", &filter, IS_ENDED_ROOT)
            .await?;
        let mut result = DeleteInstanceResult::default();
        for root in &roots {
            let tree = self.get_instance_tree(root).await?;
            let deleted = self.delete_instances_atomic(&tree.all_ids, true).await?;
            result.instances_deleted += deleted.instances_deleted;
            result.executions_deleted += deleted.executions_deleted;
            result.events_deleted += deleted.events_deleted;
            result.queue_messages_deleted += deleted.queue_messages_deleted;
        }
        Ok(result)
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let operation = "prune_executions";
        let criteria = PruneCriteria {
            keep_last: options.keep_last,
            before_ms: options.completed_before,
        };
        let store = &self.inner.store;
        let prune = store.prune_executions(instance_id, criteria, self.patience());
        let pruned = self.commit(operation, prune).await?;
        let pruned = pruned.ok_or_else(|| not_found(operation, instance_id))?;
        Ok(PruneResult {
            instances_processed: 1,
            executions_deleted: pruned.executions,
            events_deleted: pruned.events,
        })
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let instances = self
            .matching("prune_executions_bulk", &filter, "true")
            .await?;
        let mut result = PruneResult::default();
        for instance in &instances {
            let pruned = self.prune_executions(instance, options.clone()).await?;
            result.instances_processed += pruned.instances_processed;
            result.executions_deleted += pruned.executions_deleted;
            result.events_deleted += pruned.events_deleted;
        }
        Ok(result)
    }
}

impl PostgresProvider {
    fn patience(&self) -> Duration {
        self.inner.options.outage_patience
    }

    /// The instances of a filter that meet a condition; those that ended first come first.
    async fn matching(
        &self,
        operation: &'static str,
        filter: &InstanceFilter,
        condition: &str,
    ) -> Result<Vec<String>, ProviderError> {
        let matching = self.inner.store.matching(
            operation,
            condition,
            filter.instance_ids.as_deref(),
            filter.completed_before,
            i64::from(filter.limit.unwrap_or(DEFAULT_LIMIT)),
            self.patience(),
        );
        matching
            .await
            .map_err(|error| provider_error(operation, &error))
    }
}
