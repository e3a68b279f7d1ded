//! Providers on SQLite.

use uuid::Uuid;
use wakeline_bus::Write;

use super::{Result, Session, SqliteStore, results, workers};
use crate::{
    name::FullName,
    provider::{AnswerKey, NewProvider, Provider, ProviderRegistration},
    results::AnswerState,
    store::{Providers, StoreFuture, in_micros, only, providers::BY_ID, values_of},
    wakes,
    worker::OwnerOutcome,
};

impl Providers for SqliteStore {
    fn register_provider(&self, provider: NewProvider) -> Write<ProviderRegistration> {
        let wakes = wakes::registered_provider;
        self.write("register_provider", wakes, move |session| {
            register(session, provider)
        })
    }

    fn find_providers(&self, names: Vec<FullName>) -> StoreFuture<'_, Vec<Option<Provider>>> {
        self.read("find_providers", move |session| {
            names.into_iter().map(|name| named(session, name)).collect()
        })
    }

    fn find_answers(
        &self,
        questions: Vec<(FullName, String)>,
    ) -> StoreFuture<'_, Vec<Option<(Provider, AnswerState)>>> {
        let chunks = self.chunks.clone();
        self.read("find_answers", move |session| {
            let answer = |(name, hash): (FullName, String)| {
                let Some(provider) = named(session, name)? else {
                    return Ok(None);
                };
                let key = AnswerKey {
                    provider: provider.id,
                    version: provider.version,
                    hash,
                };
                let state = results::answer_state(session, &key, &chunks)?;
                Ok(Some((provider, state)))
            };
            questions.into_iter().map(answer).collect()
        })
    }

    fn remove_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<Provider>> {
        let wakes = wakes::removed_provider;
        self.write("remove_provider", wakes, move |session| {
            let owned = owned(session, provider, user)?;
            if let OwnerOutcome::Done(provider) = &owned {
                session.execute("DELETE FROM jobs_provider WHERE id = ?1", [provider.id])?;
            }
            Ok(owned)
        })
    }

    fn touch_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<Provider>> {
        self.write("touch_provider", wakes::nobody, move |session| {
            let owned = owned(session, provider, user)?;
            if let OwnerOutcome::Done(provider) = &owned
                && let Some(worker) = provider.worker
            {
                workers::beat(session, worker)?;
            }
            Ok(owned)
        })
    }
}

fn register(session: &Session<'_>, new: NewProvider) -> Result<ProviderRegistration> {
    if let Some(worker) = new.worker
        && workers::owner(session, worker)? != Some(new.user)
    {
        return Ok(ProviderRegistration::NoWorker);
    }
    let known = named(session, new.name.clone())?;
    if let Some(known) = &known
        && !new.is_superuser
        && known.user != new.user
    {
        return Ok(ProviderRegistration::NotOwner);
    }
    let worker = match new.worker {
        // The server's own providers have no worker.
        None if new.name.is_internal() => None,
        None => Some(workers::create(session, new.user)?),
        worker => worker,
    };
    let rows = session.rows(
        "INSERT INTO jobs_provider (id, room, category, name, schema, content_type, user_id,
            worker_id, ttl, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {now})
        ON CONFLICT (room, category, name) DO UPDATE SET
            schema = excluded.schema, content_type = excluded.content_type,
            user_id = excluded.user_id, worker_id = excluded.worker_id, ttl = excluded.ttl,
            version = version + 1
        RETURNING *",
        values_of![
            Uuid::new_v4(),
            new.name.room,
            new.name.category,
            new.name.name,
            new.schema,
            new.content_type,
            new.user,
            worker,
            new.ttl.map(in_micros),
        ],
    )?;
    Ok(ProviderRegistration::Done {
        provider: Provider::from_row(only(&rows)?),
        is_new: known.is_none(),
    })
}

fn named(session: &Session<'_>, name: FullName) -> Result<Option<Provider>> {
    let sql = "SELECT * FROM jobs_provider WHERE room = $1 AND category = $2 AND name = $3";
    let rows = session.rows(sql, values_of![name.room, name.category, name.name])?;
    Ok(rows.first().map(Provider::from_row))
}

fn owned(
    session: &Session<'_>,
    provider: Uuid,
    user: Option<Uuid>,
) -> Result<OwnerOutcome<Provider>> {
    let rows = session.rows(BY_ID, values_of![provider])?;
    Ok(match rows.first().map(Provider::from_row) {
        None => OwnerOutcome::NotFound,
        Some(provider) if user.is_some_and(|user| user != provider.user) => OwnerOutcome::NotOwner,
        Some(provider) => OwnerOutcome::Done(provider),
    })
}
