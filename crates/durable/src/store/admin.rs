//! The writes of operators, and the reads that they need: for [`InstanceAdmin`](crate::InstanceAdmin)
//! and the provider's management calls. A call is repeated during an outage, for `patience`.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;
use tokio_postgres::{Row, types::Type};
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use super::{
    Parameter, Store,
    apply_changes::{self, Columns, Message, mailbox_wakes},
    is_transient, owned, retry, retry_while, write,
};
use crate::{
    admin::DeletedCounts,
    row::{count, number},
    view::PruneCriteria,
};

/// An instance that a bulk deletion deletes with its descendants: a condition of
/// [`Store::matching`].
pub(crate) const IS_ENDED_ROOT: &str =
    "i.parent IS NULL AND x.status IN ('Completed', 'Failed', 'ContinuedAsNew')";

/// Why nothing was deleted.
#[derive(Debug)]
pub(crate) enum DeleteRefusal {
    /// This instance is running.
    Running(String),
    /// This instance would be left without its parent.
    Orphan(String),
}

fn ids(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| row.get("id")).collect()
}

impl Store {
    /// Sends the instance the message that duroxide's `Client::cancel_instance` sends.
    pub(crate) fn cancel(
        self: &Arc<Self>,
        instance: &str,
        reason: &str,
        patience: Duration,
    ) -> Write<()> {
        let item = json!({ "CancelInstance": { "instance": instance, "reason": reason } });
        let message = Message {
            instance: instance.to_owned(),
            item: item.to_string(),
            after_us: None,
            at_ms: None,
        };
        let (store, until) = (self.clone(), Instant::now() + patience);
        let run = async move {
            let mut columns = Columns::default();
            columns.add_message(0, &message);
            let parameters = columns.parameters();
            let statement = apply_changes::statement("@schema@");
            let attempt = |_| store.query(apply_changes::KIND, &statement, &parameters);
            retry_while(is_transient, until, attempt).await
        };
        let schema = self.schema.clone();
        let wakes = move |rows: &Vec<Row>| {
            let row = rows.first();
            row.map_or_else(Wakes::none, |row| mailbox_wakes(&schema, row))
        };
        write(run, wakes).map(drop)
    }

    /// The parent of an instance, if it has one; none if there is no such instance.
    pub(crate) async fn parent(
        &self,
        instance: &str,
        patience: Duration,
    ) -> Result<Option<Option<String>>, Error> {
        let statement = "SELECT parent FROM @schema@.instance WHERE id = $1";
        let parameters: [Parameter<'_>; 1] = [(&instance, Type::TEXT)];
        let rows = retry(Instant::now() + patience, || {
            self.query("get_parent_id", statement, &parameters)
        });
        Ok(rows.await?.first().map(|row| row.get("parent")))
    }

    pub(crate) async fn children(
        &self,
        instance: &str,
        patience: Duration,
    ) -> Result<Vec<String>, Error> {
        let statement = "SELECT id FROM @schema@.instance WHERE parent = $1 ORDER BY id";
        let parameters: [Parameter<'_>; 1] = [(&instance, Type::TEXT)];
        let rows = retry(Instant::now() + patience, || {
            self.query("list_children", statement, &parameters)
        });
        Ok(ids(&rows.await?))
    }

    /// An instance and all its descendants.
    pub(crate) async fn tree(&self, root: &str, patience: Duration) -> Result<Vec<String>, Error> {
        let mut tree = vec![root.to_owned()];
        let mut expanded = 0;
        while let Some(parent) = tree.get(expanded) {
            let children = self.children(parent, patience).await?;
            tree.extend(children);
            expanded += 1;
        }
        Ok(tree)
    }

    /// At most `limit` instances `i` whose current execution `x` meets the condition and ended before
    /// a time, among `ids` if there are any; those that ended first come first.
    pub(crate) async fn matching(
        &self,
        operation: &'static str,
        condition: &str,
        ids_among: Option<&[String]>,
        before_ms: Option<u64>,
        limit: i64,
        patience: Duration,
    ) -> Result<Vec<String>, Error> {
        let statement = format!(
            "SELECT i.id FROM @schema@.instance i
             LEFT JOIN @schema@.execution x ON x.instance = i.id AND x.number = i.execution
             WHERE {condition} AND ($1::text[] IS NULL OR i.id = ANY ($1))
                 AND ($2::bigint IS NULL OR x.completed_at < to_timestamp($2 / 1000.0))
             ORDER BY x.completed_at LIMIT $3"
        );
        let before = before_ms.map(number);
        let parameters: [Parameter<'_>; 3] = [
            (&ids_among, Type::TEXT_ARRAY),
            (&before, Type::INT8),
            (&limit, Type::INT8),
        ];
        let rows = retry(Instant::now() + patience, || {
            self.query(operation, &statement, &parameters)
        });
        Ok(ids(&rows.await?))
    }

    /// Deletes instances and everything of theirs, or nothing. It wakes nobody.
    pub(crate) fn delete_instances(
        self: &Arc<Self>,
        ids: Vec<String>,
        force: bool,
        patience: Duration,
    ) -> Write<Result<DeletedCounts, DeleteRefusal>> {
        let instances = ids.len() as u64;
        let parameters = vec![owned(ids, Type::TEXT_ARRAY), owned(force, Type::BOOL)];
        let statement = "SELECT * FROM @schema@.delete_instances($1, $2)";
        let until = Instant::now() + patience;
        let delete = self.silent_write("delete_instances_atomic", statement, parameters, until);
        delete.map(move |rows| {
            let row = &rows[0];
            if let Some(running) = row.get("running") {
                return Err(DeleteRefusal::Running(running));
            }
            if let Some(orphan) = row.get("orphan") {
                return Err(DeleteRefusal::Orphan(orphan));
            }
            Ok(DeletedCounts {
                instances,
                executions: count(row, "executions"),
                events: count(row, "events"),
                queued: count(row, "messages"),
            })
        })
    }

    /// Deletes finished executions of an instance; none if there is no such instance. It wakes nobody.
    pub(crate) fn prune_executions(
        self: &Arc<Self>,
        instance: &str,
        criteria: PruneCriteria,
        patience: Duration,
    ) -> Write<Option<DeletedCounts>> {
        let parameters = vec![
            owned(instance.to_owned(), Type::TEXT),
            owned(criteria.keep_last.map(i64::from), Type::INT8),
            owned(criteria.before_ms.map(number), Type::INT8),
        ];
        let statement = "SELECT * FROM @schema@.prune_executions($1, $2, $3)";
        let until = Instant::now() + patience;
        let prune = self.silent_write("prune_executions", statement, parameters, until);
        prune.map(|rows| {
            rows.first().map(|row| DeletedCounts {
                executions: count(row, "executions"),
                events: count(row, "events"),
                ..DeletedCounts::default()
            })
        })
    }
}
