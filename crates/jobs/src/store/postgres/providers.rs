//! Providers on PostgreSQL.

use std::collections::HashMap;

use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{PostgresStore, owned, results::ANSWERS};
use crate::{
    name::FullName,
    provider::{NewProvider, Provider, ProviderRegistration},
    results::AnswerState,
    store::{Providers, Query, Row, StoreFuture, in_micros, only, values_of},
    wakes,
    worker::OwnerOutcome,
};

impl Providers for PostgresStore {
    fn register_provider(&self, provider: NewProvider) -> Write<ProviderRegistration> {
        let statement = "SELECT outcome, (provider).* FROM
            wakeline.jobs_provider_register($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let parameters = values_of![
            Uuid::new_v4(),
            provider.name.room,
            provider.name.category,
            provider.name.name,
            provider.schema,
            provider.content_type,
            provider.user,
            provider.is_superuser,
            provider.worker,
            Uuid::new_v4(),
            provider.ttl.map(in_micros),
        ];
        self.call(statement, parameters, wakes::registered_provider, |rows| {
            let row = only(rows)?;
            Ok(match row.get("outcome") {
                2 => ProviderRegistration::NoWorker,
                3 => ProviderRegistration::NotOwner,
                outcome => ProviderRegistration::Done {
                    provider: Provider::from_row(row),
                    is_new: outcome == 0_i64,
                },
            })
        })
    }

    fn find_providers(&self, names: Vec<FullName>) -> StoreFuture<'_, Vec<Option<Provider>>> {
        let part = |part: fn(&FullName) -> &String| -> Vec<String> {
            names.iter().map(|name| part(name).clone()).collect()
        };
        let statement = "SELECT p.* FROM unnest($1, $2, $3) AS wanted (room, category, name)
            CROSS JOIN LATERAL (
                SELECT * FROM wakeline.jobs_provider q WHERE q.room = wanted.room
                    AND q.category = wanted.category AND q.name = wanted.name
            ) p";
        let parameters = values_of![
            part(|name| &name.room),
            part(|name| &name.category),
            part(|name| &name.name),
        ];
        let rows = self.rows("find_providers", statement, parameters);
        async move {
            let rows = rows.await?;
            let found = rows.iter().map(Provider::from_row);
            let found: HashMap<FullName, Provider> = found
                .map(|provider| (provider.name.clone(), provider))
                .collect();
            Ok(names.iter().map(|name| found.get(name).cloned()).collect())
        }
        .boxed()
    }

    fn find_answers(
        &self,
        questions: Vec<(FullName, String)>,
    ) -> StoreFuture<'_, Vec<Option<(Provider, AnswerState)>>> {
        let (mut rooms, mut categories) = (Vec::new(), Vec::new());
        let (mut names, mut hashes) = (Vec::new(), Vec::new());
        for (name, hash) in questions {
            rooms.push(name.room);
            categories.push(name.category);
            names.push(name.name);
            hashes.push(hash);
        }
        let (ids, versions) = (Vec::<Uuid>::new(), Vec::<i64>::new());
        let parameters = values_of![rooms, categories, names, ids, versions, hashes];
        let rows = self.rows("find_answers", ANSWERS, parameters);
        async move {
            let read = |row: &Row| {
                let state = || AnswerState::from_row(row, &self.chunks);
                (!row.is_null("id")).then(|| (Provider::from_row(row), state()))
            };
            Ok(rows.await?.iter().map(read).collect())
        }
        .boxed()
    }

    fn remove_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<Provider>> {
        let statement = "WITH gone AS (
                DELETE FROM wakeline.jobs_provider
                WHERE id = $1 AND ($2 IS NULL OR user_id = $2) RETURNING *
            )
            SELECT p.*, EXISTS (SELECT 1 FROM wakeline.jobs_provider WHERE id = $1) AS exists
            FROM (SELECT 1) one LEFT JOIN gone p ON true";
        let parameters = values_of![provider, user];
        self.call(statement, parameters, wakes::removed_provider, |rows| {
            owned(rows, Provider::from_row)
        })
    }

    fn touch_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<Provider>> {
        let statement = "WITH mine AS (
                SELECT * FROM wakeline.jobs_provider
                WHERE id = $1 AND ($2 IS NULL OR user_id = $2)
            ), beaten AS (
                UPDATE wakeline.jobs_worker w SET beat_at = wakeline.jobs_now()
                FROM mine WHERE w.id = mine.worker_id RETURNING w.id
            )
            SELECT p.*, EXISTS (SELECT 1 FROM wakeline.jobs_provider WHERE id = $1) AS exists
            FROM (SELECT 1) one LEFT JOIN mine p ON true LEFT JOIN beaten ON true";
        let parameters = values_of![provider, user];
        self.call(statement, parameters, wakes::nobody, |rows| {
            owned(rows, Provider::from_row)
        })
    }
}
