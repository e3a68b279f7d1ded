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
            let check = Check::of(&query, Dialect::Postgres, place, query.givens + 1);
            let columns: Vec<Vec<Position>> = (0..query.givens)
                .map(|index| given.iter().map(|facts| facts[index]).collect())
                .collect();
            let list = |part: &dyn Fn(usize) -> String| {
                let parts: Vec<String> = (0..query.givens).map(part).collect();
                parts.join(", ")
            };
            let arrays = list(&|index| format!("${}::bigint[]", index + 1));
            let names = list(&|index| format!("v{index}"));
            let text = format!(
                "SELECT g.n FROM unnest({arrays}) WITH ORDINALITY AS g({names}, n) \
                 WHERE EXISTS ({})",
                check.text
            );
            let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = Vec::new();
            for column in &columns {
                parameters.push((column, Type::INT8_ARRAY));
            }
            let texts: Vec<&str> = check.names.iter().map(|name| &**name).collect();
            for text in &texts {
                parameters.push((text, Type::TEXT));
            }
            let rows = self.ask("feed-holds", &text, &parameters).await?;
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
