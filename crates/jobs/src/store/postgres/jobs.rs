//! Jobs on PostgreSQL.

use futures_util::FutureExt;
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{PostgresStore, only};
use crate::{
    job::{Job, NewJob, Registered},
    name::FullName,
    page::{Page, Paged},
    store::{Jobs, Step},
    wakes,
};

impl Jobs for PostgresStore {
    fn register_job(&self, job: NewJob) -> Write<Registered> {
        let statement =
            "SELECT * FROM wakeline.jobs_job_register($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let parameters = parameters![
            Uuid::new_v4() => Type::UUID,
            job.name.room => Type::TEXT,
            job.name.category => Type::TEXT,
            job.name.name => Type::TEXT,
            job.schema => Type::TEXT,
            job.max_retries => Type::INT4,
            job.user => Type::UUID,
            job.worker => Type::UUID,
            Uuid::new_v4() => Type::UUID,
        ];
        self.write(statement, parameters, wakes::registered, |rows| {
            let row = only(rows)?;
            Ok(match row.get::<_, i16>(0) {
                2 => Registered::NoWorker,
                3 => Registered::Conflict,
                told => Registered::Done {
                    job: seen(row, 2),
                    worker: row.get(1),
                    is_new: told == 0,
                },
            })
        })
    }

    fn jobs(&self, scopes: Vec<String>, page: Page) -> Step<'_, Paged<Job>> {
        let statement = "SELECT (
                SELECT count(*) FROM wakeline.jobs_job WHERE room = ANY ($3) AND NOT is_deleted
            ), s.*
            FROM (SELECT 1) one LEFT JOIN LATERAL (
                SELECT id, created_at FROM wakeline.jobs_job
                WHERE room = ANY ($3) AND NOT is_deleted
                ORDER BY created_at DESC, id LIMIT $1 OFFSET $2
            ) j ON true LEFT JOIN wakeline.jobs_job_seen s ON s.id = j.id
            ORDER BY j.created_at DESC, j.id";
        async move {
            let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
                (&page.limit, Type::INT8),
                (&page.offset, Type::INT8),
                (&scopes, Type::TEXT_ARRAY),
            ];
            let rows = self.ask("jobs", statement, &parameters).await?;
            let total = only(&rows)?.get(0);
            let items = rows
                .iter()
                .filter(|row| row.get::<_, Option<Uuid>>(1).is_some());
            let items = items.map(|row| seen(row, 1)).collect();
            Ok(Paged { items, total })
        }
        .boxed()
    }

    fn job(&self, name: FullName) -> Step<'_, Option<Job>> {
        let statement =
            "SELECT s.* FROM wakeline.jobs_job_seen s JOIN wakeline.jobs_job j USING (id)
            WHERE j.room = $1 AND j.category = $2 AND j.name = $3 AND NOT j.is_deleted";
        async move {
            let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
                (&name.room, Type::TEXT),
                (&name.category, Type::TEXT),
                (&name.name, Type::TEXT),
            ];
            let rows = self.ask("job", statement, &parameters).await?;
            Ok(rows.first().map(|row| seen(row, 0)))
        }
        .boxed()
    }
}

/// A row of `jobs_job_seen`, from this column on.
fn seen(row: &Row, from: usize) -> Job {
    Job {
        id: row.get(from),
        name: FullName {
            room: row.get(from + 1),
            category: row.get(from + 2),
            name: row.get(from + 3),
        },
        schema: row.get(from + 4),
        max_retries: row.get(from + 5),
        workers: row.get(from + 6),
    }
}
