//! The store of jobs.

use futures_util::FutureExt;
use wakeline_bus::Write;

use super::{Query, Row, StoreFuture, page_of, values_of};
use crate::{
    job::{Job, JobRegistration, NewJob},
    name::FullName,
    page::{ListPage, Page},
};

const PAGE: &str = "SELECT v.*, (
        SELECT count(*) FROM wakeline.jobs_job WHERE room {in $3} AND NOT is_deleted
    ) AS total
    FROM (SELECT 1) one LEFT JOIN (
        SELECT id, created_at FROM wakeline.jobs_job WHERE room {in $3} AND NOT is_deleted
        ORDER BY created_at DESC, id LIMIT $1 OFFSET $2
    ) j ON true LEFT JOIN wakeline.jobs_job_view v ON v.id = j.id
    ORDER BY j.created_at DESC, j.id";

const BY_NAME: &str = "SELECT * FROM wakeline.jobs_job_view
    WHERE room = $1 AND category = $2 AND name = $3 AND NOT is_deleted";

pub trait Jobs: Query {
    /// A repeat with the same worker changes nothing more; without a worker it creates another one.
    fn register_job(&self, job: NewJob) -> Write<JobRegistration>;

    /// Newest first.
    fn jobs(&self, scopes: Vec<String>, page: Page) -> StoreFuture<'_, ListPage<Job>> {
        let rows = self.rows("jobs", PAGE, values_of![page.limit, page.offset, scopes]);
        async move { page_of(&rows.await?, Job::from_row) }.boxed()
    }

    fn job(&self, name: FullName) -> StoreFuture<'_, Option<Job>> {
        let parameters = values_of![name.room, name.category, name.name];
        let rows = self.rows("job", BY_NAME, parameters);
        async move { Ok(rows.await?.first().map(Job::from_row)) }.boxed()
    }
}

impl Job {
    /// From a row of `jobs_job_view`.
    pub(super) fn from_row(row: &Row) -> Self {
        let workers: Option<String> = row.get("workers");
        let workers = workers.unwrap_or_default();
        let ids = workers.split(',').filter_map(|id| id.parse().ok());
        Self {
            id: row.get("id"),
            name: FullName::from_row(row),
            schema: row.get("schema"),
            max_retries: row.get("max_retries"),
            workers: ids.collect(),
        }
    }
}
