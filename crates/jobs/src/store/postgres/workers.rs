//! Workers on PostgreSQL.

use uuid::Uuid;
use wakeline_bus::Write;

use super::{PostgresStore, owned};
use crate::{
    name::FullName,
    store::{Commit, Row, Workers, only, values_of, write},
    task::{LostWorkers, SweepAges, SweepOutcome, Task},
    wakes,
    worker::{OwnerOutcome, Worker},
};

impl Workers for PostgresStore {
    fn heartbeat(&self, worker: Uuid, user: Uuid) -> Write<OwnerOutcome<Worker>> {
        let statement = "WITH beaten AS (
                UPDATE wakeline.jobs_worker SET beat_at = {now}
                WHERE id = $1 AND user_id = $2 RETURNING *
            )
            SELECT w.*, EXISTS (SELECT 1 FROM wakeline.jobs_worker WHERE id = $1) AS exists
            FROM (SELECT 1) one LEFT JOIN beaten w ON true";
        let (parameters, commit) = (values_of![worker, user], Commit::Shared("heartbeat"));
        write(self, commit, statement, parameters, wakes::nobody, |rows| {
            owned(rows, Worker::from_row)
        })
    }

    fn heartbeats(&self, workers: Vec<Uuid>) -> Write<()> {
        // A worker that is locked sends a heartbeat itself or is being removed. To wait for it could be
        // a deadlock: other steps lock one worker at a time, in any order.
        let statement = "UPDATE wakeline.jobs_worker SET beat_at = {now}
            WHERE id IN (
                SELECT id FROM wakeline.jobs_worker WHERE id = ANY ($1)
                FOR NO KEY UPDATE SKIP LOCKED
            )";
        let (parameters, commit) = (values_of![workers], Commit::Alone("heartbeats"));
        write(self, commit, statement, parameters, wakes::nobody, |_| {
            Ok(())
        })
    }

    fn remove_worker(&self, worker: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<LostWorkers>> {
        let statement = "SELECT outcome, subject, full_name, (task).*
            FROM wakeline.jobs_worker_remove($1, $2)";
        let parameters = values_of![worker, user];
        self.call(statement, parameters, wakes::removed_worker, |rows| {
            Ok(match only(rows)?.get("outcome") {
                0_i64 => OwnerOutcome::Done(loss(rows)),
                1 => OwnerOutcome::NotFound,
                _ => OwnerOutcome::NotOwner,
            })
        })
    }

    fn sweep(&self, terms: SweepAges) -> Write<SweepOutcome> {
        let statement =
            "SELECT outcome, subject, full_name, (task).*, deleted_tasks, next_sweep, is_more
            FROM wakeline.jobs_sweep($1, $2, $3, $4)";
        let parameters = values_of![terms.worker, terms.internal, terms.kept, terms.limit];
        self.call(statement, parameters, wakes::swept, |rows| {
            let summary = only(&rows[rows.len().saturating_sub(1)..])?;
            Ok(SweepOutcome {
                loss: loss(rows),
                deleted_tasks: summary.get("deleted_tasks"),
                next: summary.get("next_sweep"),
                is_more: summary.get("is_more"),
            })
        })
    }
}

/// What was removed with workers: see `jobs_loss`.
fn loss(rows: &[Row]) -> LostWorkers {
    // No events for a name that no route accepts; the rest is still removed.
    let name = |row: &Row| FullName::parse(&row.get::<String>("full_name"));
    let mut loss = LostWorkers::default();
    for row in rows {
        match row.get::<i64>("outcome") {
            0 => loss.workers.push(row.get("subject")),
            10 => loss.tasks.push(Task::from_row(row)),
            11 => loss.jobs.extend(name(row)),
            12 => loss
                .providers
                .extend(name(row).map(|name| (name, row.get("subject")))),
            _ => {}
        }
    }
    loss
}
