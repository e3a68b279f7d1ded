//! Providers on SQLite.

use rusqlite::{Connection, params};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Result, SqliteStore, results, rows, workers};
use crate::{
    name::FullName,
    provider::{AnswerKey, NewProvider, Provider, ProviderRegistration},
    results::AnswerState,
    store::{Providers, StoreFuture, in_micros, providers::BY_ID, values_of},
    wakes,
    worker::OwnerOutcome,
};

impl Providers for SqliteStore {
    fn register_provider(&self, provider: NewProvider) -> Write<ProviderRegistration> {
        self.write(
            "register_provider",
            wakes::registered_provider,
            move |connection, now| register(connection, &provider, now),
        )
    }

    fn find_providers(&self, names: Vec<FullName>) -> StoreFuture<'_, Vec<Option<Provider>>> {
        self.read("find_providers", move |connection, _| {
            names.iter().map(|name| named(connection, name)).collect()
        })
    }

    fn find_answers(
        &self,
        questions: Vec<(FullName, String)>,
    ) -> StoreFuture<'_, Vec<Option<(Provider, AnswerState)>>> {
        let chunks = self.chunks.clone();
        self.read("find_answers", move |connection, now| {
            let answer = |(name, hash): (FullName, String)| {
                let Some(provider) = named(connection, &name)? else {
                    return Ok(None);
                };
                let key = AnswerKey {
                    provider: provider.id,
                    version: provider.version,
                    hash,
                };
                let look = results::look(connection, &key, now, &chunks)?;
                Ok(Some((provider, look)))
            };
            questions.into_iter().map(answer).collect()
        })
    }

    fn remove_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<Provider>> {
        self.write(
            "remove_provider",
            wakes::removed_provider,
            move |connection, _| {
                let owned = owned(connection, provider, user)?;
                if let OwnerOutcome::Done(provider) = &owned {
                    connection
                        .prepare_cached("DELETE FROM jobs_provider WHERE id = ?1")?
                        .execute([provider.id])?;
                }
                Ok(owned)
            },
        )
    }

    fn touch_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<Provider>> {
        self.write("touch_provider", wakes::nobody, move |connection, now| {
            let owned = owned(connection, provider, user)?;
            if let OwnerOutcome::Done(Provider {
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

fn register(connection: &Connection, new: &NewProvider, now: i64) -> Result<ProviderRegistration> {
    if let Some(worker) = new.worker
        && workers::owner(connection, worker)? != Some(new.user)
    {
        return Ok(ProviderRegistration::NoWorker);
    }
    let known = named(connection, &new.name)?;
    if let Some(known) = &known
        && !new.is_superuser
        && known.user != new.user
    {
        return Ok(ProviderRegistration::NotOwner);
    }
    let worker = match new.worker {
        // The server's own providers have no worker.
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
    Ok(ProviderRegistration::Done {
        provider,
        is_new: known.is_none(),
    })
}

fn named(connection: &Connection, name: &FullName) -> Result<Option<Provider>> {
    let statement = "SELECT * FROM jobs_provider WHERE room = $1 AND category = $2 AND name = $3";
    let FullName {
        room,
        category,
        name,
    } = name.clone();
    let rows = rows(connection, statement, values_of![room, category, name])?;
    Ok(rows.first().map(Provider::from_row))
}

fn owned(
    connection: &Connection,
    provider: Uuid,
    user: Option<Uuid>,
) -> Result<OwnerOutcome<Provider>> {
    let rows = rows(connection, BY_ID, values_of![provider])?;
    Ok(match rows.first().map(Provider::from_row) {
        None => OwnerOutcome::NotFound,
        Some(provider) if user.is_some_and(|user| user != provider.user) => OwnerOutcome::NotOwner,
        Some(provider) => OwnerOutcome::Done(provider),
    })
}
