//! Jobs on PostgreSQL.

use uuid::Uuid;
use wakeline_bus::Write;

use super::PostgresStore;
use crate::{
    job::{Job, JobRegistration, NewJob},
    store::{Jobs, only, values_of},
    wakes,
};

impl Jobs for PostgresStore {
    fn register_job(&self, job: NewJob) -> Write<JobRegistration> {
        let statement = "SELECT outcome, worker, (job).*
             FROM wakeline.jobs_job_register($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let parameters = values_of![
            Uuid::new_v4(),
            job.name.room,
            job.name.category,
            job.name.name,
            job.schema,
            i64::from(job.max_retries),
            job.user,
            job.worker,
            Uuid::new_v4(),
        ];
        self.call(statement, parameters, wakes::registered, |rows| {
            let row = only(rows)?;
            Ok(match row.get("outcome") {
                2 => JobRegistration::NoWorker,
                3 => JobRegistration::Conflict,
                outcome => JobRegistration::Done {
                    job: Job::from_row(row),
                    worker: row.get("worker"),
                    is_new: outcome == 0_i64,
                },
            })
        })
    }
}
