//! Questions on PostgreSQL.

use futures_util::FutureExt;
use tokio_postgres::{Row as Line, types::Type};
use wakeline_store::Error;

use super::{PostgresStore, only};
use crate::{
    query::Query,
    store::{
        Concern, Concerned, Gather, Gathered, Position, Queries, Row, Slice, Step, Way,
        names::Ids,
        rows::{Raw, gathered, is_in_order},
        sql::{self, Asked, Concerns, Dialect, Level, Nothing, Table, Walking, Ways},
    },
};

impl Queries for PostgresStore {
    fn slice(&self, slice: Slice) -> Step<'_, Vec<Row>> {
        async move { self.rows(&slice).await }.boxed()
    }

    fn gather(&self, gather: Gather) -> Step<'_, Vec<Gathered>> {
        async move { self.gather_rows(&gather).await }.boxed()
    }

    fn concerned(&self, asked: Concerned) -> Step<'_, Vec<Concern>> {
        async move { self.concerns(asked).await }.boxed()
    }
}

impl PostgresStore {
    async fn ids_of(&self, query: &Query) -> Result<Ids, Error> {
        let (kinds, roles) = sql::names(query);
        self.ids(&kinds, &roles).await
    }

    async fn rows(&self, slice: &Slice) -> Result<Vec<Row>, Error> {
        let ids = self.ids_of(&slice.query).await?;
        let way = match &slice.after {
            Some(after) => after.way,
            None => self.way(&ids, slice).await?,
        };
        let walking = Walking::new(&slice.query, slice.newest, slice.from, slice.to, way);
        if !walking.allows(&slice.given) {
            return Ok(Vec::new());
        }
        let given = std::slice::from_ref(&slice.given);
        let mut found = Vec::new();
        for level in Level::of(slice.after.as_ref()) {
            let left = slice.limit - found.len();
            let asked = walking.one(Dialect::Postgres, &ids, &slice.given, level, left);
            self.run("feed_slice", &walking, asked, given, 0, &mut found)
                .await?;
            if found.len() >= slice.limit {
                break;
            }
        }
        is_in_order(&found)?;
        Ok(found.into_iter().map(|each| each.row).collect())
    }

    async fn way(&self, ids: &Ids, slice: &Slice) -> Result<Way, Error> {
        let mut ways = Ways::of(slice);
        loop {
            let asked = match ways.next(Dialect::Postgres, ids, slice) {
                Ok(way) => return Ok(way),
                Err(asked) => asked,
            };
            let lines = self.lines("feed_way", &asked).await?;
            let answer: Vec<i64> = only(&lines)?.get(0);
            let shorter = answer.first().copied();
            ways.answer(shorter.ok_or_else(|| Error::Failed("a way cannot be read".into()))?);
        }
    }

    async fn gather_rows(&self, gather: &Gather) -> Result<Vec<Gathered>, Error> {
        let ids = self.ids_of(&gather.query).await?;
        let walking = Walking::new(&gather.query, 0, 0, gather.to, Way::FromGiven);
        let mut found = Vec::new();
        let mut first = 0;
        if let Some((of, after)) = &gather.after {
            first = of + 1;
            let given = &gather.givens[*of..first.min(gather.givens.len())];
            for level in Level::of(Some(after)) {
                let left = gather.limit - found.len();
                let asked = walking.one(Dialect::Postgres, &ids, &given[0], level, left);
                self.run("feed_gather", &walking, asked, given, *of, &mut found)
                    .await?;
                if found.len() >= gather.limit {
                    break;
                }
            }
        }
        let rest = gather.givens.get(first..).unwrap_or_default();
        if found.len() < gather.limit && !rest.is_empty() {
            let table = Table::of(gather.query.givens, rest.iter());
            let left = gather.limit - found.len();
            let asked = walking.many(Dialect::Postgres, &ids, table, left);
            self.run("feed_gather", &walking, asked, rest, first, &mut found)
                .await?;
        }
        is_in_order(&found)?;
        Ok(found)
    }

    async fn run(
        &self,
        name: &'static str,
        walking: &Walking<'_>,
        asked: Result<Asked, Nothing>,
        givens: &[Vec<Position>],
        first: usize,
        found: &mut Vec<Gathered>,
    ) -> Result<(), Error> {
        let Ok(asked) = asked else {
            return Ok(());
        };
        for line in self.lines(name, &asked).await? {
            let raw = Raw {
                at: line.get(0),
                hashes: line.get(1),
            };
            found.push(gathered(walking, raw, givens, first)?);
        }
        Ok(())
    }

    async fn concerns(&self, asked: Concerned) -> Result<Vec<Concern>, Error> {
        let Concerned {
            query,
            variable,
            facts,
            watched,
        } = asked;
        let ids = self.ids_of(&query).await?;
        let concerns = Concerns::new(&query, variable);
        if facts.is_empty() || (watched.is_empty() && !concerns.is_pure()) {
            return Ok(Vec::new());
        }
        let Ok(asked) = concerns.ask(Dialect::Postgres, &ids, facts, &watched) else {
            return Ok(Vec::new());
        };
        let lines = self.lines("feed_concerned", &asked).await?;
        let found = lines
            .iter()
            .filter_map(|line| concerns.read(&line.get::<_, Vec<i64>>(0), &watched));
        Ok(found.collect())
    }

    async fn lines(&self, name: &'static str, asked: &Asked) -> Result<Vec<Line>, Error> {
        let none = Vec::new();
        let table = |place: usize| asked.tables.get(place).map_or(&none, |table| &table.values);
        self.ask(
            name,
            "SELECT at, hashes FROM wakeline.feed_ask($1, $2, $3, $4)",
            &[
                (&asked.text, Type::TEXT),
                (&asked.numbers, Type::INT8_ARRAY),
                (table(0), Type::INT8_ARRAY),
                (table(1), Type::INT8_ARRAY),
            ],
        )
        .await
    }
}
