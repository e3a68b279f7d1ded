//! Reads of one instance each, shared: see `sql/005_read.sql`.

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, types::Type};
use wakeline_store::postgres::{Batch, RunError, Weigh};

use crate::cache::Edition;

#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) instance: String,
    /// What the caller knows of it.
    pub(crate) known: Option<Edition>,
    /// Whether the history is wanted at all.
    pub(crate) wants_history: bool,
}

impl Weigh for Look {}

#[derive(Debug)]
pub(crate) struct Looked {
    /// None: there is no such instance (there may be events all the same).
    pub(crate) edition: Option<Edition>,
    /// The events come after what the caller knows.
    pub(crate) continues: bool,
    pub(crate) events: Vec<String>,
    pub(crate) custom_status: Option<Vec<u8>>,
    pub(crate) custom_status_version: i64,
}

#[derive(Debug)]
pub(crate) struct Looks {
    statement: String,
}

impl Looks {
    pub(crate) fn new(schema: &str) -> Self {
        Self {
            statement: format!("SELECT * FROM {schema}.look($1, $2, $3, $4, $5, $6)"),
        }
    }
}

impl Batch for Looks {
    type Operation = Look;
    type Output = Looked;

    const KIND: &'static str = "durable_look";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Look],
    ) -> BoxFuture<'a, Result<Vec<Looked>, RunError>> {
        async move {
            let instances: Vec<&str> = operations.iter().map(|look| &*look.instance).collect();
            let wants: Vec<bool> = operations.iter().map(|look| look.wants_history).collect();
            let column = |part: fn(&Edition) -> i64| -> Vec<Option<i64>> {
                let known = operations.iter().map(|look| look.known.as_ref());
                known.map(|known| known.map(part)).collect()
            };
            let rows = client
                .query_typed(
                    &self.statement,
                    &[
                        (&instances, Type::TEXT_ARRAY),
                        (&wants, Type::BOOL_ARRAY),
                        (&column(|known| known.incarnation), Type::INT8_ARRAY),
                        (&column(|known| known.execution), Type::INT8_ARRAY),
                        (&column(|known| known.last), Type::INT8_ARRAY),
                        (&column(|known| known.edits), Type::INT8_ARRAY),
                    ],
                )
                .await?;
            let looked = rows.iter().map(|row| {
                let incarnation: Option<i64> = row.get("incarnation");
                Looked {
                    edition: incarnation.map(|incarnation| Edition {
                        incarnation,
                        execution: row.get("execution"),
                        last: row.get("last_event"),
                        edits: row.get("edits"),
                    }),
                    continues: row.get("continues"),
                    events: row.get("events"),
                    custom_status: row.get("custom_status"),
                    custom_status_version: row.get("custom_status_version"),
                }
            });
            Ok(looked.collect())
        }
        .boxed()
    }
}
