//! Whether a query finds anything from given facts on.

use std::sync::Arc;

use futures_util::FutureExt;
use rusqlite::{params_from_iter, types::Value};
use wakeline_store::Error;

use super::SqliteStore;
use crate::{
    query::Query,
    store::{
        Checks, Position, Step,
        checks::{Check, Dialect},
    },
};

impl Checks for SqliteStore {
    fn holds(&self, query: Arc<Query>, given: Vec<Vec<Position>>) -> Step<'_, Vec<bool>> {
        self.sqlite
            .read("feed-holds", move |connection| {
                let place = |index: usize| format!("?{}", index + 1);
                let check = Check::of(&query, Dialect::Sqlite, place, query.givens + 1);
                let text = format!("SELECT EXISTS ({})", check.text);
                let mut statement = connection.prepare_cached(&text)?;
                let names = check.names.iter().map(|name| Value::Text(name.to_string()));
                let names: Vec<Value> = names.collect();
                let mut held = Vec::with_capacity(given.len());
                for facts in &given {
                    let facts = facts.iter().map(|&at| Value::Integer(at));
                    let parameters = params_from_iter(facts.chain(names.iter().cloned()));
                    held.push(statement.query_row(parameters, |row| row.get(0))?);
                }
                Ok::<_, Error>(held)
            })
            .boxed()
    }
}
