//! Reads of histories and custom statuses that many callers share: see
//! `sql/005_read_and_delete.sql`.

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, types::Type};
use wakeline_store::postgres::{Batch, RunError, Weigh};

use crate::provider::cache::HistoryVersion;

#[derive(Clone, Debug)]
pub(crate) struct HistoryRead {
    pub(crate) instance: String,
    /// The part of the history that the caller has cached.
    pub(crate) cached: Option<HistoryVersion>,
    /// Without, only the custom status is read.
    pub(crate) with_history: bool,
}

impl Weigh for HistoryRead {}

#[derive(Debug)]
pub(crate) struct StoredHistory {
    /// None if there is no such instance (there may be events all the same).
    pub(crate) version: Option<HistoryVersion>,
    /// The events follow those that the caller has cached; otherwise they are all there are.
    pub(crate) continues_cached: bool,
    pub(crate) events: Vec<String>,
    pub(crate) custom_status: Option<Vec<u8>>,
    pub(crate) custom_status_version: i64,
}

#[derive(Debug)]
pub(crate) struct HistoryReads {
    statement: String,
}

impl HistoryReads {
    pub(crate) fn new(schema: &str) -> Self {
        Self {
            statement: format!("SELECT * FROM {schema}.read_histories($1, $2, $3, $4, $5, $6)"),
        }
    }
}

impl Batch for HistoryReads {
    type Operation = HistoryRead;
    type Output = StoredHistory;

    const KIND: &'static str = "durable_read_histories";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        reads: &'a [HistoryRead],
    ) -> BoxFuture<'a, Result<Vec<StoredHistory>, RunError>> {
        async move {
            let instances: Vec<&str> = reads.iter().map(|read| &*read.instance).collect();
            let with_history: Vec<bool> = reads.iter().map(|read| read.with_history).collect();
            let column = |part: fn(&HistoryVersion) -> i64| -> Vec<Option<i64>> {
                let cached = reads.iter().map(|read| read.cached.as_ref());
                cached.map(|version| version.map(part)).collect()
            };
            let rows = client
                .query_typed(
                    &self.statement,
                    &[
                        (&instances, Type::TEXT_ARRAY),
                        (&with_history, Type::BOOL_ARRAY),
                        (&column(|version| version.incarnation), Type::INT8_ARRAY),
                        (&column(|version| version.execution), Type::INT8_ARRAY),
                        (&column(|version| version.last_event), Type::INT8_ARRAY),
                        (&column(|version| version.edits), Type::INT8_ARRAY),
                    ],
                )
                .await?;
            let histories = rows.iter().map(|row| {
                let incarnation: Option<i64> = row.get("incarnation");
                StoredHistory {
                    version: incarnation.map(|incarnation| HistoryVersion {
                        incarnation,
                        execution: row.get("execution"),
                        last_event: row.get("last_event"),
                        edits: row.get("edits"),
                    }),
                    continues_cached: row.get("continues"),
                    events: row.get("events"),
                    custom_status: row.get("custom_status"),
                    custom_status_version: row.get("custom_status_version"),
                }
            });
            Ok(histories.collect())
        }
        .boxed()
    }
}
