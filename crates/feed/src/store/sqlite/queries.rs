//! Questions on SQLite.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::FutureExt;
use rusqlite::{Connection, types::Value};
use wakeline_store::Error;

use super::SqliteStore;
use crate::{
    query::Query,
    store::{
        Concern, Concerned, Gather, Gathered, Position, Queries, Row, Slice, Step, Way,
        names::Ids,
        rows::{Raw, gathered, is_in_order},
        sql::{self, Asked, Concerns, Dialect, Level, Nothing, Table, Walking, Ways},
    },
};

impl SqliteStore {
    async fn ids_of(&self, query: &Query) -> Result<Ids, Error> {
        let (kinds, roles) = sql::names(query);
        self.ids(kinds, roles).await
    }
}

impl Queries for SqliteStore {
    fn slice(&self, slice: Slice) -> Step<'_, Vec<Row>> {
        async move {
            let ids = self.ids_of(&slice.query).await?;
            self.sqlite
                .read("feed_slice", move |connection| {
                    rows(connection, &ids, &slice)
                })
                .await
        }
        .boxed()
    }

    fn gather(&self, gather: Gather) -> Step<'_, Vec<Gathered>> {
        async move {
            let ids = self.ids_of(&gather.query).await?;
            self.sqlite
                .read("feed_gather", move |connection| {
                    gather_rows(connection, &ids, &gather)
                })
                .await
        }
        .boxed()
    }

    fn concerned(&self, asked: Concerned) -> Step<'_, Vec<Concern>> {
        async move {
            let ids = self.ids_of(&asked.query).await?;
            self.sqlite
                .read("feed_concerned", move |connection| {
                    concerns(connection, &ids, asked)
                })
                .await
        }
        .boxed()
    }
}

fn rows(connection: &Connection, ids: &Ids, slice: &Slice) -> Result<Vec<Row>, Error> {
    let way = match &slice.after {
        Some(after) => after.way,
        None => way(connection, ids, slice)?,
    };
    let walking = Walking::new(&slice.query, slice.newest, slice.from, slice.to, way);
    if !walking.allows(&slice.given) {
        return Ok(Vec::new());
    }
    let given = std::slice::from_ref(&slice.given);
    let mut found = Vec::new();
    for level in Level::of(slice.after.as_ref()) {
        let left = slice.limit - found.len();
        let asked = walking.one(Dialect::Sqlite, ids, &slice.given, level, left);
        run(connection, &walking, asked, given, 0, &mut found)?;
        if found.len() >= slice.limit {
            break;
        }
    }
    is_in_order(&found)?;
    Ok(found.into_iter().map(|each| each.row).collect())
}

fn way(connection: &Connection, ids: &Ids, slice: &Slice) -> Result<Way, Error> {
    let mut ways = Ways::of(slice);
    loop {
        let asked = match ways.next(Dialect::Sqlite, ids, slice) {
            Ok(way) => return Ok(way),
            Err(asked) => asked,
        };
        let mut statement = connection.prepare_cached(&asked.text)?;
        let values = rusqlite::params_from_iter(values(&asked));
        ways.answer(statement.query_row(values, |row| row.get(0))?);
    }
}

fn gather_rows(
    connection: &Connection,
    ids: &Ids,
    gather: &Gather,
) -> Result<Vec<Gathered>, Error> {
    let walking = Walking::new(&gather.query, 0, 0, gather.to, Way::FromGiven);
    let mut found = Vec::new();
    let mut first = 0;
    if let Some((of, after)) = &gather.after {
        first = of + 1;
        let given = &gather.givens[*of..first.min(gather.givens.len())];
        for level in Level::of(Some(after)) {
            let left = gather.limit - found.len();
            let asked = walking.one(Dialect::Sqlite, ids, &given[0], level, left);
            run(connection, &walking, asked, given, *of, &mut found)?;
            if found.len() >= gather.limit {
                break;
            }
        }
    }
    let rest = gather.givens.get(first..).unwrap_or_default();
    if found.len() < gather.limit && !rest.is_empty() {
        let table = Table::of(gather.query.givens, rest.iter());
        let left = gather.limit - found.len();
        let asked = walking.many(Dialect::Sqlite, ids, table, left);
        run(connection, &walking, asked, rest, first, &mut found)?;
    }
    is_in_order(&found)?;
    Ok(found)
}

fn run(
    connection: &Connection,
    walking: &Walking<'_>,
    asked: Result<Asked, Nothing>,
    givens: &[Vec<Position>],
    first: usize,
    found: &mut Vec<Gathered>,
) -> Result<(), Error> {
    let Ok(asked) = asked else {
        return Ok(());
    };
    let places = walking.walk.steps.len() + 1;
    let hashes = walking.query.outputs.len();
    let mut statement = connection.prepare_cached(&asked.text)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values(&asked)))?;
    while let Some(row) = rows.next()? {
        let at = (0..places).map(|column| row.get(column));
        let hashes = (places..places + hashes).map(|column| row.get(column));
        let raw = Raw {
            at: at.collect::<Result<_, _>>()?,
            hashes: hashes.collect::<Result<_, _>>()?,
        };
        found.push(gathered(walking, raw, givens, first)?);
    }
    Ok(())
}

fn concerns(connection: &Connection, ids: &Ids, asked: Concerned) -> Result<Vec<Concern>, Error> {
    let Concerned {
        query,
        variable,
        facts,
        watched,
    } = asked;
    let query: Arc<Query> = query;
    let concerns = Concerns::new(&query, variable);
    if facts.is_empty() || (watched.is_empty() && !concerns.is_pure()) {
        return Ok(Vec::new());
    }
    let Ok(asked) = concerns.ask(Dialect::Sqlite, ids, facts, &watched) else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(&asked.text)?;
    let columns = statement.column_count();
    let mut rows = statement.query(rusqlite::params_from_iter(values(&asked)))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let row: Vec<i64> = (0..columns)
            .map(|column| row.get(column))
            .collect::<Result<_, _>>()?;
        found.extend(concerns.read(&row, &watched));
    }
    Ok(found)
}

/// The tables come first, in the two places that the numbers leave them.
fn values(asked: &Asked) -> Vec<Value> {
    let tables = (0..sql::TABLES).map(|place| match asked.tables.get(place) {
        Some(table) => Value::Text(table.json()),
        None => Value::Null,
    });
    let numbers = asked.numbers.iter().map(|number| Value::Integer(*number));
    tables.chain(numbers).collect()
}
