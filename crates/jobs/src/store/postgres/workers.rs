//! Workers on PostgreSQL.

use futures_util::FutureExt;
use tokio_postgres::{Row, types::Type};
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, only, tasks::told_task};
use crate::{
    name::FullName,
    page::{Page, Paged},
    store::{Step, Workers},
    task::{Loss, Swept, Terms},
    wakes,
    worker::{Owned, Worker, WorkerSummary},
};

impl Workers for PostgresStore {
    fn create_worker(&self, user: Uuid) -> Write<Worker> {
        let statement = "INSERT INTO wakeline.jobs_worker (id, user_id, beat_at, created_at)
            VALUES ($1, $2, wakeline.jobs_now(), wakeline.jobs_now()) RETURNING id, beat_at";
        let parameters = parameters![Uuid::new_v4() => Type::UUID, user => Type::UUID];
        self.write(statement, parameters, wakes::nobody, |rows| {
            let row = only(rows)?;
            Ok(Worker {
                id: row.get(0),
                last_heartbeat: row.get(1),
            })
        })
    }

    fn heartbeat(&self, worker: Uuid, user: Uuid) -> Write<Owned<Worker>> {
        let statement = "WITH beaten AS (
                UPDATE wakeline.jobs_worker SET beat_at = wakeline.jobs_now()
                WHERE id = $1 AND user_id = $2 RETURNING beat_at
            )
            SELECT (SELECT beat_at FROM beaten),
                EXISTS (SELECT 1 FROM wakeline.jobs_worker WHERE id = $1)";
        let parameters = parameters![worker => Type::UUID, user => Type::UUID];
        self.write(statement, parameters, wakes::nobody, move |rows| {
            let row = only(rows)?;
            let (beat, is_there): (Option<i64>, bool) = (row.get(0), row.get(1));
            Ok(match beat {
                Some(last_heartbeat) => Owned::Done(Worker {
                    id: worker,
                    last_heartbeat,
                }),
                None if is_there => Owned::Foreign,
                None => Owned::NotFound,
            })
        })
    }

    fn worker_owner(&self, worker: Uuid) -> Step<'_, Option<Uuid>> {
        async move {
            let statement = "SELECT user_id FROM wakeline.jobs_worker WHERE id = $1";
            let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 1] =
                [(&worker, Type::UUID)];
            let rows = self.ask("worker_owner", statement, &parameters).await?;
            Ok(rows.first().map(|row| row.get(0)))
        }
        .boxed()
    }

    fn remove_worker(&self, worker: Uuid, user: Option<Uuid>) -> Write<Owned<Loss>> {
        let statement = "SELECT * FROM wakeline.jobs_worker_remove($1, $2)";
        let parameters = parameters![worker => Type::UUID, user => Type::UUID];
        self.write(statement, parameters, wakes::removed_worker, |rows| {
            Ok(match only(rows)?.get::<_, i16>(0) {
                0 => Owned::Done(loss(rows)?),
                1 => Owned::NotFound,
                _ => Owned::Foreign,
            })
        })
    }

    fn workers(&self, page: Page) -> Step<'_, Paged<WorkerSummary>> {
        let statement = "SELECT w.id, w.beat_at,
                (SELECT count(*) FROM wakeline.jobs_link l WHERE l.worker_id = w.id),
                (SELECT count(*) FROM wakeline.jobs_worker)
            FROM (SELECT 1) one LEFT JOIN LATERAL (
                SELECT id, beat_at, created_at FROM wakeline.jobs_worker
                ORDER BY created_at DESC, id LIMIT $1 OFFSET $2
            ) w ON true ORDER BY w.created_at DESC, w.id";
        async move {
            let rows = self
                .ask(
                    "workers",
                    statement,
                    &[(&page.limit, Type::INT8), (&page.offset, Type::INT8)],
                )
                .await?;
            summaries(&rows)
        }
        .boxed()
    }

    fn workers_of(&self, scopes: Vec<String>, page: Page) -> Step<'_, Paged<WorkerSummary>> {
        let statement = "WITH those AS (
                SELECT w.id, w.beat_at, w.created_at FROM wakeline.jobs_worker w
                WHERE EXISTS (
                    SELECT 1 FROM wakeline.jobs_link l JOIN wakeline.jobs_job j ON j.id = l.job_id
                    WHERE l.worker_id = w.id AND j.room = ANY ($3) AND NOT j.is_deleted
                )
            )
            SELECT w.id, w.beat_at,
                (SELECT count(*) FROM wakeline.jobs_link l WHERE l.worker_id = w.id),
                (SELECT count(*) FROM those)
            FROM (SELECT 1) one LEFT JOIN LATERAL (
                SELECT * FROM those ORDER BY created_at DESC, id LIMIT $1 OFFSET $2
            ) w ON true ORDER BY w.created_at DESC, w.id";
        async move {
            let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] = [
                (&page.limit, Type::INT8),
                (&page.offset, Type::INT8),
                (&scopes, Type::TEXT_ARRAY),
            ];
            let rows = self.ask("workers", statement, &parameters).await?;
            summaries(&rows)
        }
        .boxed()
    }

    fn sweep(&self, terms: Terms) -> Write<Swept> {
        let statement = "SELECT * FROM wakeline.jobs_sweep($1, $2, $3, $4)";
        let parameters = parameters![
            terms.worker => Type::INT8,
            terms.internal => Type::INT8,
            terms.kept => Type::INT8,
            terms.limit => Type::INT8,
        ];
        self.write(statement, parameters, wakes::swept, |rows| {
            let mut swept = Swept {
                loss: loss(rows)?,
                ..Swept::default()
            };
            for row in rows.iter().filter(|row| row.get::<_, i16>(0) == 20) {
                let forgotten: Option<String> = row.get(1);
                swept.forgotten = forgotten.and_then(|text| text.parse().ok()).unwrap_or(0);
                swept.next = row.get(7);
                swept.is_more = row.get::<_, Option<i16>>(6) == Some(1);
            }
            Ok(swept)
        })
    }
}

/// One row even where the page is empty: it has the count of all.
fn summaries(rows: &[Row]) -> Result<Paged<WorkerSummary>, Error> {
    let total = only(rows)?.get(3);
    let items = rows
        .iter()
        .filter_map(|row| {
            let id: Option<Uuid> = row.get(0);
            Some(WorkerSummary {
                worker: Worker {
                    id: id?,
                    last_heartbeat: row.get(1),
                },
                job_count: row.get(2),
            })
        })
        .collect();
    Ok(Paged { items, total })
}

/// What is told of what went with workers.
fn loss(rows: &[Row]) -> Result<Loss, Error> {
    let mut loss = Loss::default();
    for row in rows {
        let name = || row.get::<_, Option<&str>>(1).and_then(FullName::parse);
        match row.get::<_, i16>(0) {
            0 => loss.workers.push(row.get(2)),
            10 => loss.tasks.push(told_task(row)?),
            11 => loss.jobs.extend(name()),
            12 => loss.providers.extend(name().map(|name| (name, row.get(2)))),
            _ => {}
        }
    }
    Ok(loss)
}
