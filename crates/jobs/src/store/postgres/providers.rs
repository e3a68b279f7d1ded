//! Providers on PostgreSQL.

use std::{collections::HashMap, time::Duration};

use futures_util::FutureExt;
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{PostgresStore, only, results};
use crate::{
    name::FullName,
    page::{Page, Paged},
    provider::{NewProvider, Provider, ProviderFilter, ProviderRegistered},
    results::Look,
    store::{Providers, Step, in_micros},
    wakes,
    worker::Owned,
};

const COLUMNS: &str = "p.id, p.room, p.category, p.name, p.schema, p.content_type, p.user_id,
    p.worker_id, p.created_at, p.version, p.ttl";

/// Whether one is among those of a [`ProviderFilter`].
const LISTED: &str = "room = ANY ($3) AND (
        room <> '@internal' OR $4 IS NULL OR room || ':' || category || ':' || name = ANY ($4)
    )";

impl Providers for PostgresStore {
    fn register_provider(&self, provider: NewProvider) -> Write<ProviderRegistered> {
        let statement = "SELECT * FROM
            wakeline.jobs_provider_register($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let parameters = parameters![
            Uuid::new_v4() => Type::UUID,
            provider.name.room => Type::TEXT,
            provider.name.category => Type::TEXT,
            provider.name.name => Type::TEXT,
            provider.schema => Type::TEXT,
            provider.content_type => Type::TEXT,
            provider.user => Type::UUID,
            provider.is_superuser => Type::BOOL,
            provider.worker => Type::UUID,
            Uuid::new_v4() => Type::UUID,
            provider.ttl.map(in_micros) => Type::INT8,
        ];
        self.write(statement, parameters, wakes::registered_provider, |rows| {
            let row = only(rows)?;
            Ok(match row.get::<_, i16>(0) {
                2 => ProviderRegistered::NoWorker,
                3 => ProviderRegistered::Foreign,
                told => ProviderRegistered::Done {
                    provider: seen(row, 1),
                    is_new: told == 0,
                },
            })
        })
    }

    fn providers(&self, filter: ProviderFilter, page: Page) -> Step<'_, Paged<Provider>> {
        async move {
            let internal = filter.internal_texts();
            let statement = format!(
                "SELECT (SELECT count(*) FROM wakeline.jobs_provider WHERE {LISTED}),
                    {COLUMNS}
                FROM (SELECT 1) one LEFT JOIN LATERAL (
                    SELECT * FROM wakeline.jobs_provider WHERE {LISTED}
                    ORDER BY created_at DESC, id LIMIT $1 OFFSET $2
                ) p ON true ORDER BY p.created_at DESC, p.id"
            );
            let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
                (&page.limit, Type::INT8),
                (&page.offset, Type::INT8),
                (&filter.rooms, Type::TEXT_ARRAY),
                (&internal, Type::TEXT_ARRAY),
            ];
            let rows = self.ask("providers", &statement, &parameters).await?;
            let total = only(&rows)?.get(0);
            let items = rows
                .iter()
                .filter(|row| row.get::<_, Option<Uuid>>(1).is_some());
            let items = items.map(|row| seen(row, 1)).collect();
            Ok(Paged { items, total })
        }
        .boxed()
    }

    fn newest_provider(&self, room: String, category: &'static str) -> Step<'_, Option<Provider>> {
        async move {
            let statement = format!(
                "SELECT {COLUMNS} FROM wakeline.jobs_provider p
                WHERE p.room = $1 AND p.category = $2 ORDER BY p.created_at DESC, p.id LIMIT 1"
            );
            let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                [(&room, Type::TEXT), (&category, Type::TEXT)];
            let rows = self.ask("newest_provider", &statement, &parameters).await?;
            Ok(rows.first().map(|row| seen(row, 0)))
        }
        .boxed()
    }

    fn find_providers(&self, names: Vec<FullName>) -> Step<'_, Vec<Option<Provider>>> {
        async move {
            let part =
                |part: fn(&FullName) -> &str| -> Vec<&str> { names.iter().map(part).collect() };
            let rooms = part(|name| &name.room);
            let categories = part(|name| &name.category);
            let called = part(|name| &name.name);
            let statement = format!(
                "SELECT {COLUMNS} FROM unnest($1, $2, $3) AS wanted (room, category, name)
                CROSS JOIN LATERAL (
                    SELECT * FROM wakeline.jobs_provider q WHERE q.room = wanted.room
                        AND q.category = wanted.category AND q.name = wanted.name
                ) p"
            );
            let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
                (&rooms, Type::TEXT_ARRAY),
                (&categories, Type::TEXT_ARRAY),
                (&called, Type::TEXT_ARRAY),
            ];
            let rows = self.ask("find_providers", &statement, &parameters).await?;
            let found: HashMap<FullName, Provider> = rows
                .iter()
                .map(|row| seen(row, 0))
                .map(|provider| (provider.name.clone(), provider))
                .collect();
            Ok(names.iter().map(|name| found.get(name).cloned()).collect())
        }
        .boxed()
    }

    fn find_answers(
        &self,
        questions: Vec<(FullName, String)>,
    ) -> Step<'_, Vec<Option<(Provider, Look)>>> {
        async move {
            let part = |part: fn(&(FullName, String)) -> &str| -> Vec<&str> {
                questions.iter().map(part).collect()
            };
            let rooms = part(|(name, _)| &name.room);
            let categories = part(|(name, _)| &name.category);
            let called = part(|(name, _)| &name.name);
            let hashes = part(|(_, hash)| hash);
            let statement = "SELECT * FROM wakeline.jobs_answers($1, $2, $3, $4)";
            let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
                (&rooms, Type::TEXT_ARRAY),
                (&categories, Type::TEXT_ARRAY),
                (&called, Type::TEXT_ARRAY),
                (&hashes, Type::TEXT_ARRAY),
            ];
            let rows = self.ask("find_answers", statement, &parameters).await?;
            let found = rows.iter().map(|row| {
                let id: Option<Uuid> = row.get(0);
                id.map(|_| (seen(row, 0), results::seen(row, 11, &self.pieces)))
            });
            Ok(found.collect())
        }
        .boxed()
    }

    fn provider(&self, provider: Uuid) -> Step<'_, Option<Provider>> {
        async move {
            let statement = format!("SELECT {COLUMNS} FROM wakeline.jobs_provider p WHERE id = $1");
            let rows = self
                .ask("provider", &statement, &[(&provider, Type::UUID)])
                .await?;
            Ok(rows.first().map(|row| seen(row, 0)))
        }
        .boxed()
    }

    fn remove_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<Owned<Provider>> {
        let statement = "WITH gone AS (
                DELETE FROM wakeline.jobs_provider
                WHERE id = $1 AND ($2 IS NULL OR user_id = $2) RETURNING *
            )
            SELECT EXISTS (SELECT 1 FROM wakeline.jobs_provider WHERE id = $1), p.id, p.room,
                p.category, p.name, p.schema, p.content_type, p.user_id, p.worker_id,
                p.created_at, p.version, p.ttl
            FROM (SELECT 1) one LEFT JOIN gone p ON true";
        let parameters = parameters![provider => Type::UUID, user => Type::UUID];
        self.write(statement, parameters, wakes::removed_provider, |rows| {
            owned(only(rows)?)
        })
    }

    fn touch_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<Owned<Provider>> {
        let statement = "WITH mine AS (
                SELECT * FROM wakeline.jobs_provider
                WHERE id = $1 AND ($2 IS NULL OR user_id = $2)
            ), beaten AS (
                UPDATE wakeline.jobs_worker w SET beat_at = wakeline.jobs_now()
                FROM mine WHERE w.id = mine.worker_id RETURNING w.id
            )
            SELECT EXISTS (SELECT 1 FROM wakeline.jobs_provider WHERE id = $1), p.id, p.room,
                p.category, p.name, p.schema, p.content_type, p.user_id, p.worker_id,
                p.created_at, p.version, p.ttl
            FROM (SELECT 1) one LEFT JOIN mine p ON true LEFT JOIN beaten ON true";
        let parameters = parameters![provider => Type::UUID, user => Type::UUID];
        self.write(statement, parameters, wakes::nobody, |rows| {
            owned(only(rows)?)
        })
    }
}

/// The statement saw what was there before it began.
fn owned(row: &Row) -> Result<Owned<Provider>, wakeline_store::Error> {
    let is_there: bool = row.get(0);
    Ok(match row.get::<_, Option<Uuid>>(1) {
        Some(_) => Owned::Done(seen(row, 1)),
        None if is_there => Owned::Foreign,
        None => Owned::NotFound,
    })
}

fn seen(row: &Row, from: usize) -> Provider {
    let ttl: Option<i64> = row.get(from + 10);
    Provider {
        id: row.get(from),
        name: FullName {
            room: row.get(from + 1),
            category: row.get(from + 2),
            name: row.get(from + 3),
        },
        schema: row.get(from + 4),
        content_type: row.get(from + 5),
        user: row.get(from + 6),
        worker: row.get(from + 7),
        created_at: row.get(from + 8),
        version: row.get(from + 9),
        ttl: ttl.map(|micros| Duration::from_micros(micros.unsigned_abs())),
    }
}
