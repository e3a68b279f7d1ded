//! Whether a query finds anything from given facts on: one question for all of them.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio_postgres::types::{ToSql, Type};

use super::PostgresStore;
use crate::{
    query::Query,
    store::{
        Checks, Position, Step,
        checks::{Check, Dialect},
    },
};

impl Checks for PostgresStore {
    fn holds(&self, query: Arc<Query>, given: Vec<Vec<Position>>) -> Step<'_, Vec<bool>> {
        async move {
            if given.is_empty() {
                return Ok(Vec::new());
            }
            let place = |index: usize| format!("g.v{index}");
            let check = Check::of(&query, Dialect::Postgres, place, 1);
            let (width, rows) = (query.givens, given.len());
            let columns: String = (0..width)
                .map(|index| format!(", $1[(n - 1) * {width} + {}] AS v{index}", index + 1))
                .collect();
            // Not by EXISTS: that may become a join, which begins anywhere.
            let text = format!(
                "SELECT CAST(g.n AS bigint) FROM (SELECT n{columns} \
                 FROM generate_series(1, {rows}) AS n OFFSET 0) g \
                 WHERE ({} LIMIT 1) IS NOT NULL",
                check.text
            );
            let facts: Vec<Position> = given.iter().flatten().copied().collect();
            let names: Vec<&str> = check.names.iter().map(|name| &**name).collect();
            let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
                (&text, Type::TEXT),
                (&facts, Type::INT8_ARRAY),
                (&names, Type::TEXT_ARRAY),
            ];
            let statement = "SELECT n FROM wakeline.feed_check($1, $2, $3) AS n";
            let rows = self.ask("feed-holds", statement, &parameters).await?;
            let mut held = vec![false; given.len()];
            for row in rows {
                let number: i64 = row.get(0);
                if let Ok(index) = usize::try_from(number - 1)
                    && let Some(one) = held.get_mut(index)
                {
                    *one = true;
                }
            }
            Ok(held)
        }
        .boxed()
    }
}
