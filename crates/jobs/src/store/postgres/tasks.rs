//! Tasks on PostgreSQL.

use futures_util::FutureExt;
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, only};
use crate::{
    name::FullName,
    page::{Page, Paged},
    store::{Step, Tasks},
    task::{Claimed, NewTask, Status, Submitted, Task, TaskFilter, Update, Updated},
    topic::Wait,
    wakes,
};

impl Tasks for PostgresStore {
    fn submit(&self, task: NewTask) -> Write<Submitted> {
        let statement = "SELECT * FROM wakeline.jobs_task_submit($1, $2, $3, $4, $5, $6, $7, $8)";
        let parameters = parameters![
            task.id => Type::UUID,
            task.job.room => Type::TEXT,
            task.job.category => Type::TEXT,
            task.job.name => Type::TEXT,
            task.room => Type::TEXT,
            task.user => Type::UUID,
            task.payload => Type::TEXT,
            task.needs_worker => Type::BOOL,
        ];
        self.write(statement, parameters, wakes::submitted, |rows| {
            let row = only(rows)?;
            Ok(match row.get::<_, i16>(0) {
                0 => Submitted::Done(told_task(row)?),
                1 => Submitted::NoJob,
                _ => Submitted::NoWorkers,
            })
        })
    }

    fn claim(&self, worker: Uuid, user: Uuid) -> Write<Claimed> {
        let statement = "SELECT * FROM wakeline.jobs_task_claim($1, $2)";
        let parameters = parameters![worker => Type::UUID, user => Type::UUID];
        self.write(statement, parameters, wakes::claimed, |rows| {
            let row = only(rows)?;
            Ok(match row.get::<_, i16>(0) {
                0 => Claimed::Task(told_task(row)?),
                1 => Claimed::NoWorker,
                2 => Claimed::Foreign,
                3 => Claimed::Nothing {
                    jobs: rows[1..].iter().map(|row| row.get(2)).collect(),
                },
                _ => Claimed::Busy,
            })
        })
    }

    fn unclaim(&self, task: Uuid, worker: Uuid) -> Write<Option<Task>> {
        let statement = "SELECT * FROM wakeline.jobs_task_unclaim($1, $2)";
        let parameters = parameters![task => Type::UUID, worker => Type::UUID];
        self.write(statement, parameters, wakes::unclaimed, |rows| {
            rows.first().map(told_task).transpose()
        })
    }

    fn task(&self, task: Uuid) -> Step<'_, Option<Task>> {
        async move {
            let statement = "SELECT CAST(0 AS smallint), NULL::text, s.*
                FROM wakeline.jobs_task_seen s WHERE s.id = $1";
            let rows = self.ask("task", statement, &[(&task, Type::UUID)]).await?;
            rows.first().map(told_task).transpose()
        }
        .boxed()
    }

    fn update(&self, update: Update) -> Write<Updated> {
        let statement = "SELECT * FROM wakeline.jobs_task_update($1, $2, $3, $4, $5, $6)";
        let parameters = parameters![
            update.task => Type::UUID,
            update.user => Type::UUID,
            update.is_superuser => Type::BOOL,
            update.status as i16 => Type::INT2,
            update.error => Type::TEXT,
            update.worker => Type::UUID,
        ];
        self.write(statement, parameters, wakes::updated, |rows| {
            let row = only(rows)?;
            let note: Option<&str> = row.get(1);
            Ok(match row.get::<_, i16>(0) {
                0 => Updated::Done {
                    task: told_task(row)?,
                    orphan: note.and_then(FullName::parse),
                },
                1 => Updated::NotFound,
                2 => Updated::Unclaimed,
                3 => Updated::Foreign,
                5 => Updated::OtherWorkers,
                _ => Updated::Stays(status(note.and_then(|text| text.parse().ok()))?),
            })
        })
    }

    fn tasks(&self, filter: TaskFilter, page: Page) -> Step<'_, Paged<Task>> {
        async move {
            let status = filter.status.map(|status| status as i16);
            let parameters: [(&(dyn ToSql + Sync), Type); 5] = [
                (&page.limit, Type::INT8),
                (&page.offset, Type::INT8),
                (&filter.room, Type::TEXT),
                (&filter.job, Type::UUID),
                (&status, Type::INT2),
            ];
            let rows = self.ask("tasks", PAGE_OF_TASKS, &parameters).await?;
            let total = only(&rows)?.get(14);
            let items = rows
                .iter()
                .filter(|row| row.get::<_, Option<Uuid>>(2).is_some());
            let items = items.map(told_task).collect::<Result<_, _>>()?;
            Ok(Paged { items, total })
        }
        .boxed()
    }

    fn ready(&self, waits: Vec<Wait>) -> Step<'_, Vec<Wait>> {
        async move {
            let (mut jobs, mut tasks, mut workers) = (Vec::new(), Vec::new(), Vec::new());
            for wait in &waits {
                match wait {
                    Wait::Claim(job) => jobs.push(*job),
                    Wait::Task(task) => tasks.push(*task),
                    Wait::Worker(worker) => workers.push(*worker),
                    _ => {}
                }
            }
            let statement = "SELECT 0, id FROM unnest($1) AS waited (id) WHERE EXISTS (
                    SELECT 1 FROM wakeline.jobs_task t WHERE t.job_id = waited.id AND t.status = 0
                )
                UNION ALL
                SELECT 1, id FROM unnest($2) AS waited (id) WHERE NOT EXISTS (
                    SELECT 1 FROM wakeline.jobs_task t WHERE t.id = waited.id AND t.status < 3
                )
                UNION ALL
                SELECT 2, id FROM unnest($3) AS waited (id) WHERE NOT EXISTS (
                    SELECT 1 FROM wakeline.jobs_worker w WHERE w.id = waited.id
                ) OR EXISTS (
                    SELECT 1 FROM wakeline.jobs_link l
                    JOIN wakeline.jobs_task p ON p.job_id = l.job_id
                    WHERE l.worker_id = waited.id AND p.status = 0
                )";
            let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
                (&jobs, Type::UUID_ARRAY),
                (&tasks, Type::UUID_ARRAY),
                (&workers, Type::UUID_ARRAY),
            ];
            let rows = self.ask("recheck", statement, &parameters).await?;
            let read = |row: &Row| match row.get::<_, i32>(0) {
                0 => Wait::Claim(row.get(1)),
                1 => Wait::Task(row.get(1)),
                _ => Wait::Worker(row.get(1)),
            };
            Ok(rows.iter().map(read).collect())
        }
        .boxed()
    }
}

/// Places in the line are counted from one task of the page to the next, not for each from the
/// beginning. One row even where the page is empty: it has the count of all.
const PAGE_OF_TASKS: &str = "WITH page AS (
        SELECT t.seq, t.id, t.job_id, t.status FROM wakeline.jobs_task t
        WHERE t.room = $3 AND ($4 IS NULL OR t.job_id = $4) AND ($5 IS NULL OR t.status = $5)
        ORDER BY t.seq DESC LIMIT $1 OFFSET $2
    ), steps AS (
        SELECT p.id, p.job_id, p.seq, (
            SELECT count(*) FROM wakeline.jobs_task q
            WHERE q.job_id = p.job_id AND q.status = 0 AND q.seq <= p.seq AND q.seq > p.before
        ) AS more
        FROM (
            SELECT id, job_id, seq,
                coalesce(lag(seq) OVER (PARTITION BY job_id ORDER BY seq), 0) AS before
            FROM page WHERE status = 0
        ) p
    ), places AS (
        SELECT id, sum(more) OVER (PARTITION BY job_id ORDER BY seq) AS place FROM steps
    )
    SELECT CAST(0 AS smallint), NULL::text, t.id, t.job_id,
        j.room || ':' || j.category || ':' || j.name, t.room, t.status, t.created_at, t.started_at,
        t.completed_at, t.worker_id, t.error, t.payload, CAST(places.place AS bigint),
        (
            SELECT count(*) FROM wakeline.jobs_task t
            WHERE t.room = $3 AND ($4 IS NULL OR t.job_id = $4) AND ($5 IS NULL OR t.status = $5)
        )
    FROM (SELECT 1) one
    LEFT JOIN page ON true
    LEFT JOIN wakeline.jobs_task t ON t.seq = page.seq
    LEFT JOIN wakeline.jobs_job j ON j.id = t.job_id
    LEFT JOIN places ON places.id = t.id
    ORDER BY t.seq DESC";

/// A row of `jobs_told` that has a task.
pub(super) fn told_task(row: &Row) -> Result<Task, Error> {
    Ok(Task {
        id: row.get(2),
        job: row.get(3),
        job_name: row.get(4),
        room: row.get(5),
        status: status(row.get(6))?,
        created_at: row.get(7),
        started_at: row.get(8),
        completed_at: row.get(9),
        worker: row.get(10),
        error: row.get(11),
        payload: row.get(12),
        queue_position: row.get(13),
    })
}

fn status(number: Option<i16>) -> Result<Status, Error> {
    number
        .and_then(Status::from_number)
        .ok_or_else(|| Error::OutcomeUnknown(format!("{number:?} is no state of a task")))
}
