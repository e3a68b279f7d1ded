//! What people read. The statements are in [`statements`](crate::store::statements); here is which
//! of them an answer needs, and how their rows become one.

mod counters;
mod dead_letters;
mod groups;
mod held_pops;
mod messages;
mod node_stats;
mod queues;
mod traces;
mod walk;

use futures_util::try_join;

use super::Queue;
use crate::{
    browse::{ListPage, Page, Span},
    error::Error,
    store::{
        read::{Row, Value},
        statements::{self, PagedStatement},
    },
};

/// Rows of a time series in an answer at most.
const MAX_ROWS: i64 = 50_000;

impl Queue {
    /// A page of a statement's rows. `filter` are its parameters but for limit and offset.
    async fn paged<T>(
        &self,
        kind: &'static str,
        statement: PagedStatement,
        filter: Vec<Value>,
        page: Page,
        read: impl Fn(&Row) -> Result<T, Error>,
    ) -> Result<ListPage<T>, Error> {
        let mut paged = filter.clone();
        paged.extend([page.limit.into(), page.offset.into()]);
        let (count, rows) = try_join!(
            self.store.rows(kind, statement.count, filter),
            self.store.rows(kind, statement.rows, paged),
        )?;
        Ok(ListPage {
            rows: rows.iter().map(read).collect::<Result<_, _>>()?,
            total: count[0].number("total"),
        })
    }

    /// The rows of a time series, of which `only` names one queue or node.
    async fn series(
        &self,
        kind: &'static str,
        statement: &'static str,
        span: Span,
        only: &Option<String>,
    ) -> Result<Vec<Row>, Error> {
        let mut parameters = span.parameters();
        parameters.extend([only.into(), MAX_ROWS.into()]);
        Ok(self.store.rows(kind, statement, parameters).await?)
    }

    /// The store's time, in microseconds since 1970.
    pub async fn now_us(&self) -> Result<i64, Error> {
        let rows = self.store.rows("now", statements::NOW, vec![]).await?;
        Ok(rows[0].number("now_us"))
    }

    /// The database's own statistics, as JSON.
    pub async fn database_health(&self) -> Result<serde_json::Value, Error> {
        Ok(self.store.health().await?)
    }
}

impl Span {
    /// As the first three parameters of a statement.
    fn parameters(self) -> Vec<Value> {
        vec![
            self.from_us.into(),
            self.to_us.into(),
            self.bucket_us.into(),
        ]
    }
}
