//! Queues and groups as things: one call of a function each.

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::types::Type;
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    manage::{Configured, GroupScope, Modes, NewOptions, Seek, Sought, Swept, SweptQueue},
    store::Manage,
};

impl Manage for PostgresStore {
    fn configure(&self, new: NewOptions) -> BoxFuture<'_, Result<Configured, Error>> {
        async move {
            let options = &new.options;
            let shown = serde_json::Value::Object(new.shown.clone()).to_string();
            let rows = self
                .postgres
                .query(
                    "configure",
                    "SELECT public_id, namespace, task FROM wakeline.queue_configure(
                         $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
                    &[
                        (&new.queue, Type::TEXT),
                        (&new.namespace, Type::TEXT),
                        (&new.task, Type::TEXT),
                        (&options.lease_ms, Type::INT8),
                        (&options.retry_limit, Type::INT4),
                        (&options.retry_delay_ms, Type::INT8),
                        (&options.keeps_dead, Type::BOOL),
                        (&options.priority, Type::INT4),
                        (&options.delay_ms, Type::INT8),
                        (&options.window_ms, Type::INT8),
                        (&options.max_size, Type::INT8),
                        (&options.age_ms, Type::INT8),
                        (&options.evicts, Type::BOOL),
                        (&options.completed_ms, Type::INT8),
                        (&options.is_sealed, Type::BOOL),
                        (&shown, Type::TEXT),
                    ],
                )
                .await?;
            Ok(Configured {
                queue_id: rows[0].get(0),
                namespace: rows[0].get(1),
                task: rows[0].get(2),
            })
        }
        .boxed()
    }

    fn delete_queue(&self, queue: String) -> BoxFuture<'_, Result<Option<i64>, Error>> {
        async move {
            let statement = "SELECT wakeline.queue_delete($1)";
            let rows = self
                .postgres
                .query("delete_queue", statement, &[(&queue, Type::TEXT)])
                .await?;
            self.places.forget(&queue);
            Ok(rows[0].get(0))
        }
        .boxed()
    }

    fn delete_group(
        &self,
        scope: GroupScope,
        with_start: bool,
    ) -> BoxFuture<'_, Result<u64, Error>> {
        async move {
            let rows = self
                .postgres
                .query(
                    "delete_group",
                    "SELECT wakeline.queue_delete_group($1, $2, $3)",
                    &[
                        (&scope.group, Type::TEXT),
                        (&scope.queue, Type::TEXT),
                        (&with_start, Type::BOOL),
                    ],
                )
                .await?;
            Ok(count(rows[0].get(0)))
        }
        .boxed()
    }

    fn seek(&self, scope: GroupScope, to: Seek) -> BoxFuture<'_, Result<Sought, Error>> {
        async move {
            let at = match to {
                Seek::End => None,
                Seek::At(at) => Some(at),
            };
            let rows = self
                .postgres
                .query(
                    "seek",
                    "SELECT moved, queue, namespace, task FROM wakeline.queue_seek($1, $2, $3, $4)",
                    &[
                        (&scope.group, Type::TEXT),
                        (&scope.queue, Type::TEXT),
                        (&scope.partition, Type::TEXT),
                        (&at, Type::INT8),
                    ],
                )
                .await?;
            Ok(Sought {
                partitions: rows.iter().map(|row| count(row.get(0))).sum(),
                queues: rows
                    .iter()
                    .map(|row| (row.get(1), row.get(2), row.get(3)))
                    .collect(),
            })
        }
        .boxed()
    }

    fn subscribe(&self, group: String, begin_us: i64) -> BoxFuture<'_, Result<u64, Error>> {
        async move {
            let rows = self
                .postgres
                .query(
                    "subscribe",
                    "SELECT wakeline.queue_subscribe($1, $2)",
                    &[(&group, Type::TEXT), (&begin_us, Type::INT8)],
                )
                .await?;
            Ok(count(rows[0].get(0)))
        }
        .boxed()
    }

    fn modes(&self) -> BoxFuture<'_, Result<Modes, Error>> {
        self.read_modes(
            "SELECT push_paused, pop_paused FROM wakeline.queue_mode",
            None,
        )
        .boxed()
    }

    fn set_push_paused(&self, paused: bool) -> BoxFuture<'_, Result<Modes, Error>> {
        let statement = "UPDATE wakeline.queue_mode SET push_paused = $1
             RETURNING push_paused, pop_paused";
        self.read_modes(statement, Some(paused)).boxed()
    }

    fn set_pop_paused(&self, paused: bool) -> BoxFuture<'_, Result<Modes, Error>> {
        let statement = "UPDATE wakeline.queue_mode SET pop_paused = $1
             RETURNING push_paused, pop_paused";
        self.read_modes(statement, Some(paused)).boxed()
    }

    fn sweep(&self, limit: u32) -> BoxFuture<'_, Result<Swept, Error>> {
        async move {
            let statement = "SELECT messages, is_more, queues, retained, completed, evicted
                 FROM wakeline.queue_sweep($1)";
            let limit = i64::from(limit);
            let rows = self
                .postgres
                .query("sweep", statement, &[(&limit, Type::INT8)])
                .await?;
            let numbers = |column: usize| rows[0].get::<_, Vec<i64>>(column);
            let (retained, completed, evicted) = (numbers(3), numbers(4), numbers(5));
            let names: Vec<String> = rows[0].get(2);
            let swept = names.into_iter().enumerate().map(|(at, queue)| SweptQueue {
                queue,
                retained: retained[at],
                completed: completed[at],
                evicted: evicted[at],
            });
            Ok(Swept {
                messages: count(rows[0].get(0)),
                is_more: rows[0].get(1),
                queues: swept.collect(),
            })
        }
        .boxed()
    }
}

impl PostgresStore {
    async fn read_modes(
        &self,
        statement: &'static str,
        paused: Option<bool>,
    ) -> Result<Modes, Error> {
        let parameter = paused.unwrap_or_default();
        let parameters: &[(&(dyn tokio_postgres::types::ToSql + Sync), Type)] =
            &[(&parameter, Type::BOOL)];
        let parameters = if paused.is_some() { parameters } else { &[] };
        let rows = self.postgres.query("modes", statement, parameters).await?;
        Ok(Modes {
            push_paused: rows[0].get(0),
            pop_paused: rows[0].get(1),
        })
    }
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
