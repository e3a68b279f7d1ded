//! Administration of queues and groups: each call is one function of the database.

use futures_util::{FutureExt, future::BoxFuture};
use serde_json::Value;
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, parameters};
use crate::{
    queue_admin::{
        ConfigureRequest, ConfigureResult, GroupScope, PauseModes, Seek, SweepResult, SweptQueue,
    },
    seal::Fingerprint,
    store::{QueueAdmin, wakes},
};

impl QueueAdmin for PostgresStore {
    fn configure(&self, request: ConfigureRequest) -> Write<Option<ConfigureResult>> {
        let options = request.options;
        let text = |given| Value::Object(given).to_string();
        self.write(
            "configure",
            "SELECT public_id, namespace, task, may_be_ready FROM wakeline.queue_configure(
                 $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
            parameters![
                request.queue => TEXT,
                request.namespace => TEXT,
                request.task => TEXT,
                options.lease_ms => INT8,
                options.retry_limit => INT4,
                options.retry_delay_ms => INT8,
                options.keeps_dead_letters => BOOL,
                options.priority => INT4,
                options.delay_ms => INT8,
                options.window_ms => INT8,
                options.max_size => INT8,
                options.max_age_ms => INT8,
                options.age_limits_waiting => BOOL,
                options.completed_retention_ms => INT8,
                options.is_sealed => BOOL,
                text(request.given) => TEXT,
                request.made_of.map(text) => TEXT,
            ],
            |rows| {
                rows.first().map(|row| ConfigureResult {
                    queue_id: row.get("public_id"),
                    namespace: row.get("namespace"),
                    task: row.get("task"),
                    may_be_ready: row.get("may_be_ready"),
                })
            },
            wakes::of_configure,
        )
    }

    fn use_key(&self, keys: Vec<Fingerprint>, may_be_first: bool) -> Write<Option<Fingerprint>> {
        let keys: Vec<i64> = keys.into_iter().map(|key| key.0).collect();
        self.write(
            "use_key",
            "UPDATE wakeline.queue_mode SET key_fingerprint = CASE
                 WHEN key_fingerprint = ANY ($1) OR key_fingerprint IS NULL AND $2
                 THEN ($1)[1] ELSE key_fingerprint END
             RETURNING key_fingerprint",
            parameters![keys => INT8_ARRAY, may_be_first => BOOL],
            |rows| {
                let key: Option<i64> = rows[0].get("key_fingerprint");
                key.map(Fingerprint)
            },
            wakes::none,
        )
    }

    fn delete_queue(&self, queue: String) -> Write<Option<i64>> {
        let partition_ids = self.partition_ids.clone();
        self.write(
            "delete_queue",
            "SELECT wakeline.queue_delete_queue($1) AS partitions",
            parameters![queue.clone() => TEXT],
            move |rows| {
                partition_ids.forget(&queue);
                rows[0].get("partitions")
            },
            wakes::none,
        )
    }

    fn delete_group(&self, scope: GroupScope, with_start: bool) -> Write<u64> {
        self.write(
            "delete_group",
            "SELECT wakeline.queue_delete_group($1, $2, $3) AS count",
            parameters![scope.group => TEXT, scope.queue => TEXT, with_start => BOOL],
            |rows| count(&rows[0]),
            wakes::whole_door,
        )
    }

    fn seek(&self, scope: GroupScope, to: Seek) -> Write<u64> {
        let at = match to {
            Seek::End => None,
            Seek::At(at) => Some(at),
        };
        self.write(
            "seek",
            "SELECT wakeline.queue_seek($1, $2, $3, $4) AS count",
            parameters![
                scope.group => TEXT, scope.queue => TEXT, scope.partition => TEXT, at => INT8,
            ],
            |rows| count(&rows[0]),
            wakes::whole_door,
        )
    }

    fn subscribe(&self, group: String, begin_us: i64) -> Write<u64> {
        self.write(
            "subscribe",
            "SELECT wakeline.queue_set_subscription($1, $2) AS count",
            parameters![group => TEXT, begin_us => INT8],
            |rows| count(&rows[0]),
            wakes::none,
        )
    }

    fn modes(&self) -> BoxFuture<'_, Result<PauseModes, Error>> {
        async move {
            let statement = "SELECT push_paused, pop_paused FROM wakeline.queue_mode";
            let rows = self.postgres.query("pauses", statement, &[]).await?;
            Ok(modes(&rows))
        }
        .boxed()
    }

    fn set_push_paused(&self, paused: bool) -> Write<PauseModes> {
        let statement = "UPDATE wakeline.queue_mode SET push_paused = $1
             RETURNING push_paused, pop_paused";
        self.write(
            "pauses",
            statement,
            parameters![paused => BOOL],
            modes,
            wakes::none,
        )
    }

    fn set_pop_paused(&self, paused: bool) -> Write<PauseModes> {
        let statement = "UPDATE wakeline.queue_mode SET pop_paused = $1
             RETURNING push_paused, pop_paused";
        self.write(
            "pauses",
            statement,
            parameters![paused => BOOL],
            modes,
            wakes::of_pop_pause,
        )
    }

    fn sweep(&self, limit: u32) -> Write<SweepResult> {
        self.write(
            "sweep",
            "SELECT messages, is_more, queues, retained, completed, evicted
             FROM wakeline.queue_sweep($1)",
            parameters![i64::from(limit) => INT8],
            |rows| {
                let numbers = |column: &str| rows[0].get::<_, Vec<i64>>(column);
                let (retained, completed) = (numbers("retained"), numbers("completed"));
                let evicted = numbers("evicted");
                let names: Vec<String> = rows[0].get("queues");
                let queues = names.into_iter().enumerate().map(|(at, queue)| SweptQueue {
                    queue,
                    retained: retained[at],
                    completed: completed[at],
                    evicted: evicted[at],
                });
                let messages: i64 = rows[0].get("messages");
                SweepResult {
                    messages: u64::try_from(messages).unwrap_or_default(),
                    is_more: rows[0].get("is_more"),
                    queues: queues.collect(),
                }
            },
            wakes::none,
        )
    }
}

fn modes(rows: &[Row]) -> PauseModes {
    PauseModes {
        push_paused: rows[0].get("push_paused"),
        pop_paused: rows[0].get("pop_paused"),
    }
}

fn count(row: &Row) -> u64 {
    u64::try_from(row.get::<_, i64>("count")).unwrap_or_default()
}
