//! Providers on SQLite.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{SqliteStore, results, tasks::name, workers};
use crate::{
    name::FullName,
    page::{Page, Paged},
    provider::{Key, NewProvider, Provider, ProviderFilter, ProviderRegistered},
    results::Look,
    store::{Providers, Step, in_micros},
    wakes,
    worker::Owned,
};

const PROVIDERS: &str = "SELECT id, room, category, name, schema, content_type, user_id, worker_id,
    created_at, version, ttl FROM jobs_provider";

/// Whether one is among those of a [`ProviderFilter`].
const LISTED: &str = "room IN (SELECT value FROM json_each(?1)) AND (
        room <> '@internal' OR ?2 IS NULL
        OR room || ':' || category || ':' || name IN (SELECT value FROM json_each(?2))
    )";

impl Providers for SqliteStore {
    fn register_provider(&self, provider: NewProvider) -> Write<ProviderRegistered> {
        self.write(
            "register_provider",
            wakes::registered_provider,
            move |connection, now| register(connection, &provider, now),
        )
    }

    fn providers(&self, filter: ProviderFilter, page: Page) -> Step<'_, Paged<Provider>> {
        self.read("providers", move |connection, _| {
            let rooms = serde_json::to_string(&filter.rooms).unwrap_or_default();
            let internal = filter.internal_texts();
            let internal = internal.map(|names| serde_json::to_string(&names).unwrap_or_default());
            let total = connection
                .prepare_cached(&format!(
                    "SELECT count(*) FROM jobs_provider WHERE {LISTED}"
                ))?
                .query_row(params![rooms, internal], |row| row.get(0))?;
            let mut statement = connection.prepare_cached(&format!(
                "{PROVIDERS} WHERE {LISTED} ORDER BY created_at DESC, id LIMIT ?3 OFFSET ?4"
            ))?;
            let page = params![rooms, internal, page.limit, page.offset];
            let items = statement.query_map(page, seen)?;
            Ok(Paged {
                items: items.collect::<Result<_, _>>()?,
                total,
            })
        })
    }

    fn newest_provider(&self, room: String, category: &'static str) -> Step<'_, Option<Provider>> {
        self.read("newest_provider", move |connection, _| {
            connection
                .prepare_cached(&format!(
                    "{PROVIDERS} WHERE room = ?1 AND category = ?2
                    ORDER BY created_at DESC, id LIMIT 1"
                ))?
                .query_row([room.as_str(), category], seen)
                .optional()
        })
    }

    fn find_providers(&self, names: Vec<FullName>) -> Step<'_, Vec<Option<Provider>>> {
        self.read("find_providers", move |connection, _| {
            names
                .iter()
                .map(|name| named(connection, name))
                .collect::<Result<_, _>>()
        })
    }

    fn find_answers(
        &self,
        questions: Vec<(FullName, String)>,
    ) -> Step<'_, Vec<Option<(Provider, Look)>>> {
        let pieces = self.pieces.clone();
        self.read("find_answers", move |connection, now| {
            let answer = |(name, hash): (FullName, String)| {
                let Some(provider) = named(connection, &name)? else {
                    return Ok(None);
                };
                let key = Key {
                    provider: provider.id,
                    version: provider.version,
                    hash,
                };
                let look = results::seen(connection, &key, now, &pieces)?;
                Ok(Some((provider, look)))
            };
            questions.into_iter().map(answer).collect()
        })
    }

    fn provider(&self, provider: Uuid) -> Step<'_, Option<Provider>> {
        self.read("provider", move |connection, _| one(connection, provider))
    }

    fn remove_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<Owned<Provider>> {
        self.write(
            "remove_provider",
            wakes::removed_provider,
            move |connection, _| {
                let owned = owned(connection, provider, user)?;
                if let Owned::Done(provider) = &owned {
                    connection
                        .prepare_cached("DELETE FROM jobs_provider WHERE id = ?1")?
                        .execute([provider.id])?;
                }
                Ok(owned)
            },
        )
    }

    fn touch_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<Owned<Provider>> {
        self.write("touch_provider", wakes::nobody, move |connection, now| {
            let owned = owned(connection, provider, user)?;
            if let Owned::Done(Provider {
                worker: Some(worker),
                ..
            }) = &owned
            {
                workers::beat(connection, *worker, now)?;
            }
            Ok(owned)
        })
    }
}

fn register(
    connection: &Connection,
    new: &NewProvider,
    now: i64,
) -> rusqlite::Result<ProviderRegistered> {
    if let Some(worker) = new.worker
        && workers::owner(connection, worker)? != Some(new.user)
    {
        return Ok(ProviderRegistered::NoWorker);
    }
    let known = named(connection, &new.name)?;
    if let Some(known) = &known
        && !new.is_superuser
        && known.user != new.user
    {
        return Ok(ProviderRegistered::Foreign);
    }
    let worker = match new.worker {
        // What the server runs itself has no worker.
        None if new.name.is_internal() => None,
        None => Some(workers::create(connection, new.user, now)?.id),
        worker => worker,
    };
    connection
        .prepare_cached(
            "INSERT INTO jobs_provider (id, room, category, name, schema, content_type, user_id,
                worker_id, ttl, created_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
            ON CONFLICT (room, category, name) DO UPDATE SET
                schema = excluded.schema, content_type = excluded.content_type,
                user_id = excluded.user_id, worker_id = excluded.worker_id, ttl = excluded.ttl,
                version = version + 1",
        )?
        .execute(params![
            Uuid::new_v4(),
            new.name.room,
            new.name.category,
            new.name.name,
            new.schema,
            new.content_type,
            new.user,
            worker,
            new.ttl.map(in_micros),
            now
        ])?;
    let provider = named(connection, &new.name)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(ProviderRegistered::Done {
        provider,
        is_new: known.is_none(),
    })
}

fn named(connection: &Connection, name: &FullName) -> rusqlite::Result<Option<Provider>> {
    connection
        .prepare_cached(&format!(
            "{PROVIDERS} WHERE room = ?1 AND category = ?2 AND name = ?3"
        ))?
        .query_row([&name.room, &name.category, &name.name], seen)
        .optional()
}

fn one(connection: &Connection, provider: Uuid) -> rusqlite::Result<Option<Provider>> {
    connection
        .prepare_cached(&format!("{PROVIDERS} WHERE id = ?1"))?
        .query_row([provider], seen)
        .optional()
}

fn owned(
    connection: &Connection,
    provider: Uuid,
    user: Option<Uuid>,
) -> rusqlite::Result<Owned<Provider>> {
    Ok(match one(connection, provider)? {
        None => Owned::NotFound,
        Some(provider) if user.is_some_and(|user| user != provider.user) => Owned::Foreign,
        Some(provider) => Owned::Done(provider),
    })
}

fn seen(row: &Row<'_>) -> rusqlite::Result<Provider> {
    let ttl: Option<i64> = row.get(10)?;
    Ok(Provider {
        id: row.get(0)?,
        name: name(row, 1)?,
        schema: row.get(4)?,
        content_type: row.get(5)?,
        user: row.get(6)?,
        worker: row.get(7)?,
        created_at: row.get(8)?,
        version: row.get(9)?,
        ttl: ttl.map(|micros| Duration::from_micros(micros.unsigned_abs())),
    })
}
