//! The store of providers.

use std::time::Duration;

use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Query, Row, StoreFuture, page_of, values_of};
use crate::{
    name::FullName,
    page::{ListPage, Page},
    provider::{NewProvider, Provider, ProviderFilter, ProviderRegistration},
    results::AnswerState,
    worker::OwnerOutcome,
};

const PAGE: &str = "WITH listed AS (
        SELECT * FROM wakeline.jobs_provider WHERE room {in $3} AND (
            room <> '@internal' OR $4 IS NULL
            OR room || ':' || category || ':' || name {in $4}
        )
    )
    SELECT p.*, (SELECT count(*) FROM listed) AS total
    FROM (SELECT 1) one LEFT JOIN (
        SELECT * FROM listed ORDER BY created_at DESC, id LIMIT $1 OFFSET $2
    ) p ON true ORDER BY p.created_at DESC, p.id";

const NEWEST: &str = "SELECT * FROM wakeline.jobs_provider WHERE room = $1 AND category = $2
    ORDER BY created_at DESC, id LIMIT 1";

pub(super) const BY_ID: &str = "SELECT * FROM wakeline.jobs_provider WHERE id = $1";

pub trait Providers: Query {
    /// A repeat is another registration, which makes the answers of earlier ones invalid; without a
    /// worker it creates another one.
    fn register_provider(&self, provider: NewProvider) -> Write<ProviderRegistration>;

    /// The provider registered under each name; in one statement.
    fn find_providers(&self, names: Vec<FullName>) -> StoreFuture<'_, Vec<Option<Provider>>>;

    /// The same, with the state of the answer that this database keeps for the request of this hash;
    /// in one statement.
    fn find_answers(
        &self,
        questions: Vec<(FullName, String)>,
    ) -> StoreFuture<'_, Vec<Option<(Provider, AnswerState)>>>;

    /// With `user`, only a provider of theirs. A repeat finds no provider.
    fn remove_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<Provider>>;

    /// A heartbeat of the provider's worker. A repeat is another heartbeat.
    fn touch_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<Provider>>;

    /// Newest first.
    fn providers(&self, filter: ProviderFilter, page: Page) -> StoreFuture<'_, ListPage<Provider>> {
        let internal = filter.internal_texts();
        let parameters = values_of![page.limit, page.offset, filter.rooms, internal];
        let rows = self.rows("providers", PAGE, parameters);
        async move { page_of(&rows.await?, Provider::from_row) }.boxed()
    }

    /// The provider of this category that was registered last in the room.
    fn newest_provider(
        &self,
        room: String,
        category: &'static str,
    ) -> StoreFuture<'_, Option<Provider>> {
        let parameters = values_of![room, category.to_owned()];
        let rows = self.rows("newest_provider", NEWEST, parameters);
        async move { Ok(rows.await?.first().map(Provider::from_row)) }.boxed()
    }

    fn provider(&self, provider: Uuid) -> StoreFuture<'_, Option<Provider>> {
        let rows = self.rows("provider", BY_ID, values_of![provider]);
        async move { Ok(rows.await?.first().map(Provider::from_row)) }.boxed()
    }
}

impl Provider {
    /// From a row with the columns of `jobs_provider`.
    pub(super) fn from_row(row: &Row) -> Self {
        let ttl: Option<i64> = row.get("ttl");
        Self {
            id: row.get("id"),
            name: FullName::from_row(row),
            schema: row.get("schema"),
            content_type: row.get("content_type"),
            user: row.get("user_id"),
            worker: row.get("worker_id"),
            created_at: row.get("created_at"),
            version: row.get("version"),
            ttl: ttl.map(|micros| Duration::from_micros(micros.unsigned_abs())),
        }
    }
}
