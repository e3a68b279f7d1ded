//! Workers on PostgreSQL.

use uuid::Uuid;
use wakeline_bus::Write;

use super::PostgresStore;
use crate::{
    name::FullName,
    store::{Row, Workers, only, values_of},
    task::{LostWorkers, SweepAges, SweepOutcome, Task},
    wakes,
    worker::{OwnerOutcome, Worker},
};

impl Workers for PostgresStore {
    fn create_worker(&self, user: Uuid) -> Write<Worker> {
        let statement = "INSERT INTO wakeline.jobs_worker (id, user_id, beat_at, created_at)
            VALUES ($1, $2, wakeline.jobs_now(), wakeline.jobs_now()) RETURNING id, beat_at";
        let parameters = values_of![Uuid::new_v4(), user];
        self.write(statement, parameters, wakes::nobody, |rows| {
            let row = only(rows)?;
            Ok(Worker {
                id: row.get("id"),
                last_heartbeat: row.get("beat_at"),
            })
        })
    }

    fn heartbeat(&self, worker: Uuid, user: Uuid) -> Write<OwnerOutcome<Worker>> {
        let statement = "WITH beaten AS (
                UPDATE wakeline.jobs_worker SET beat_at = wakeline.jobs_now()
                WHERE id = $1 AND user_id = $2 RETURNING beat_at
            )
            SELECT (SELECT beat_at FROM beaten) AS beat_at,
                EXISTS (SELECT 1 FROM wakeline.jobs_worker WHERE id = $1) AS exists";
        let parameters = values_of![worker, user];
        self.write(statement, parameters, wakes::nobody, move |rows| {
            let row = only(rows)?;
            Ok(match row.get("beat_at") {
                Some(last_heartbeat) => OwnerOutcome::Done(Worker {
                    id: worker,
                    last_heartbeat,
                }),
                None if row.get("exists") => OwnerOutcome::NotOwner,
                None => OwnerOutcome::NotFound,
            })
        })
    }

    fn remove_worker(&self, worker: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<LostWorkers>> {
        let statement = "SELECT * FROM wakeline.jobs_worker_remove($1, $2)";
        let parameters = values_of![worker, user];
        self.write(statement, parameters, wakes::removed_worker, |rows| {
            Ok(match only(rows)?.get("outcome") {
                0_i64 => OwnerOutcome::Done(loss(rows)),
                1 => OwnerOutcome::NotFound,
                _ => OwnerOutcome::NotOwner,
            })
        })
    }

    fn sweep(&self, terms: SweepAges) -> Write<SweepOutcome> {
        let statement = "SELECT * FROM wakeline.jobs_sweep($1, $2, $3, $4)";
        let parameters = values_of![terms.worker, terms.internal, terms.kept, terms.limit];
        self.write(statement, parameters, wakes::swept, |rows| {
            let mut swept = SweepOutcome {
                loss: loss(rows),
                ..SweepOutcome::default()
            };
            for row in rows.iter().filter(|row| row.get::<i64>("outcome") == 20) {
                let forgotten: Option<String> = row.get("note");
                swept.forgotten = forgotten.and_then(|text| text.parse().ok()).unwrap_or(0);
                swept.next = row.get("created_at");
                swept.is_more = row.get::<Option<i64>>("status") == Some(1);
            }
            Ok(swept)
        })
    }
}

/// What was removed with workers: see `jobs_worker_remove`.
fn loss(rows: &[Row]) -> LostWorkers {
    let mut loss = LostWorkers::default();
    for row in rows {
        let name = || FullName::parse(&row.get::<Option<String>>("note")?);
        match row.get::<i64>("outcome") {
            0 => loss.workers.push(row.get("id")),
            10 => loss.tasks.push(Task::from_row(row)),
            11 => loss.jobs.extend(name()),
            12 => loss
                .providers
                .extend(name().map(|name| (name, row.get("id")))),
            _ => {}
        }
    }
    loss
}
