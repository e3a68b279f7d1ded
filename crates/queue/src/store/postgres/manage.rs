//! Queues and groups as things: one call of a function each.

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::types::{ToSql, Type};
use wakeline_bus::{Wakes, Write};
use wakeline_store::{Error, Postgres};

use super::PostgresStore;
use crate::{
    manage::{Configured, GroupScope, Modes, NewOptions, Seek, Swept, SweptQueue},
    store::{Manage, wakes},
    topic,
};

impl Manage for PostgresStore {
    fn configure(&self, new: NewOptions) -> Write<Configured> {
        let postgres = self.postgres.clone();
        let run = async move {
            let options = &new.options;
            let given = serde_json::Value::Object(new.given.clone()).to_string();
            let rows = postgres
                .query(
                    "configure",
                    "SELECT public_id, namespace, task, may_be_ready FROM wakeline.queue_configure(
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
                        (&given, Type::TEXT),
                    ],
                )
                .await?;
            Ok(Configured {
                queue_id: rows[0].get(0),
                namespace: rows[0].get(1),
                task: rows[0].get(2),
                may_be_ready: rows[0].get(3),
            })
        };
        Write::new(topic::DOOR, run, wakes::of_configure)
    }

    fn delete_queue(&self, queue: String) -> Write<Option<i64>> {
        let (postgres, places) = (self.postgres.clone(), self.places.clone());
        let run = async move {
            let statement = "SELECT wakeline.queue_delete($1)";
            let rows = postgres
                .query("delete_queue", statement, &[(&queue, Type::TEXT)])
                .await?;
            places.forget(&queue);
            Ok(rows[0].get(0))
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn delete_group(&self, scope: GroupScope, with_start: bool) -> Write<u64> {
        let postgres = self.postgres.clone();
        let run = async move {
            let rows = postgres
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
        };
        Write::new(topic::DOOR, run, wakes::whole_door)
    }

    fn seek(&self, scope: GroupScope, to: Seek) -> Write<u64> {
        let postgres = self.postgres.clone();
        let run = async move {
            let at = match to {
                Seek::End => None,
                Seek::At(at) => Some(at),
            };
            let rows = postgres
                .query(
                    "seek",
                    "SELECT wakeline.queue_seek($1, $2, $3, $4)",
                    &[
                        (&scope.group, Type::TEXT),
                        (&scope.queue, Type::TEXT),
                        (&scope.partition, Type::TEXT),
                        (&at, Type::INT8),
                    ],
                )
                .await?;
            Ok(count(rows[0].get(0)))
        };
        Write::new(topic::DOOR, run, wakes::whole_door)
    }

    fn subscribe(&self, group: String, begin_us: i64) -> Write<u64> {
        let postgres = self.postgres.clone();
        let run = async move {
            let rows = postgres
                .query(
                    "subscribe",
                    "SELECT wakeline.queue_subscribe($1, $2)",
                    &[(&group, Type::TEXT), (&begin_us, Type::INT8)],
                )
                .await?;
            Ok(count(rows[0].get(0)))
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn modes(&self) -> BoxFuture<'_, Result<Modes, Error>> {
        let statement = "SELECT push_paused, pop_paused FROM wakeline.queue_mode";
        modes(&self.postgres, statement, &[]).boxed()
    }

    fn set_push_paused(&self, paused: bool) -> Write<Modes> {
        let statement = "UPDATE wakeline.queue_mode SET push_paused = $1
             RETURNING push_paused, pop_paused";
        self.pause(statement, paused, wakes::none)
    }

    fn set_pop_paused(&self, paused: bool) -> Write<Modes> {
        let statement = "UPDATE wakeline.queue_mode SET pop_paused = $1
             RETURNING push_paused, pop_paused";
        self.pause(statement, paused, wakes::of_pop_pause)
    }

    fn sweep(&self, limit: u32) -> Write<Swept> {
        let postgres = self.postgres.clone();
        let run = async move {
            let statement = "SELECT messages, is_more, queues, retained, completed, evicted
                 FROM wakeline.queue_sweep($1)";
            let limit = i64::from(limit);
            let rows = postgres
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
        };
        Write::new(topic::DOOR, run, wakes::none)
    }
}

impl PostgresStore {
    fn pause(
        &self,
        statement: &'static str,
        paused: bool,
        wakes: fn(&Modes) -> Wakes,
    ) -> Write<Modes> {
        let postgres = self.postgres.clone();
        let run = async move { modes(&postgres, statement, &[(&paused, Type::BOOL)]).await };
        Write::new(topic::DOOR, run, wakes)
    }
}

async fn modes(
    postgres: &Postgres,
    statement: &str,
    parameters: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Modes, Error> {
    let rows = postgres.query("modes", statement, parameters).await?;
    Ok(Modes {
        push_paused: rows[0].get(0),
        pop_paused: rows[0].get(1),
    })
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
