//! Concurrent calls on two nodes.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use tokio::sync::Barrier;
use uuid::Uuid;
use wakeline_jobs::{
    job::JobRegistration,
    store::Store,
    task::{ClaimOutcome, Status, SubmitOutcome},
    worker::OwnerOutcome,
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, TERMS, new_job, new_task, of};

const JOB: &str = "r:modifiers:Rotate";
const TASKS: usize = 200;
const CLAIMERS: usize = 16;
const ROUNDS: usize = 40;

/// Claims until there is no task left.
async fn claim_all(store: Arc<dyn Store>, worker: Uuid, user: Uuid) -> Vec<Uuid> {
    let mut claimed = Vec::new();
    loop {
        match store.claim(worker, user).done().await {
            ClaimOutcome::Task(task) => claimed.push(task.id),
            ClaimOutcome::Busy => tokio::task::yield_now().await,
            ClaimOutcome::Nothing { .. } => return claimed,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn every_task_is_claimed_once(fixture: Fixture) {
    let stores = [fixture.store.clone(), fixture.database.store().await];
    let jobs = ["r:modifiers:a", "r:modifiers:b", "s:modifiers:c"];
    let mut workers = Vec::new();
    for number in 0..CLAIMERS {
        let worker = fixture.worker().await;
        // Each worker has two of the three jobs.
        for job in [number, number + 1] {
            fixture.job(jobs[job % jobs.len()], worker).await;
        }
        workers.push(worker);
    }
    let mut tasks = BTreeSet::new();
    for number in 0..TASKS {
        tasks.insert(fixture.submit(jobs[number % jobs.len()]).await.id);
    }
    let barrier = Arc::new(Barrier::new(CLAIMERS));
    let claimers = workers.iter().enumerate().map(|(number, worker)| {
        let (store, barrier) = (stores[number % 2].clone(), barrier.clone());
        let (worker, user) = (*worker, fixture.anna);
        tokio::spawn(async move {
            barrier.wait().await;
            (worker, claim_all(store, worker, user).await)
        })
    });
    let mut claimed = Vec::new();
    for claimer in join_all(claimers).await {
        let (worker, its) = claimer.unwrap();
        for task in its {
            assert_eq!(fixture.task(task).await.worker, Some(worker));
            claimed.push(task);
        }
    }
    assert_eq!(claimed.len(), TASKS, "none twice");
    assert_eq!(BTreeSet::from_iter(claimed), tasks, "none lost");
}

pub(crate) async fn no_task_stays_with_a_worker_that_was_removed(fixture: Fixture) {
    let other = fixture.database.store().await;
    for _ in 0..ROUNDS {
        let (worker, stays) = (fixture.worker().await, fixture.worker().await);
        fixture.job_with(JOB, worker, 1).await;
        fixture.job_with(JOB, stays, 1).await;
        for _ in 0..3 {
            fixture.submit(JOB).await;
        }
        let claim = async || {
            let mut claimed = 0;
            loop {
                match fixture.store.claim(worker, fixture.anna).done().await {
                    ClaimOutcome::Task(_) => claimed += 1,
                    ClaimOutcome::Busy => tokio::task::yield_now().await,
                    _ => return claimed,
                }
            }
        };
        let (claimed, removed) =
            tokio::join!(claim(), other.remove_worker(worker, None).commit_alone());
        let OwnerOutcome::Done(loss) = removed.unwrap() else {
            panic!("it was there");
        };
        assert_eq!(loss.tasks.len(), claimed, "what it had claimed went back");
        let gone = "jobs_task WHERE status IN (1, 2)
            AND NOT EXISTS (SELECT 1 FROM jobs_worker w WHERE w.id = worker_id)";
        assert_eq!(fixture.database.count(gone).await, 0);
        let left = claim_all(fixture.store.clone(), stays, fixture.anna).await;
        assert_eq!(left.len(), 3, "all of them are there for another");
        for task in left {
            fixture.set(task, Status::Cancelled).await;
        }
        fixture.remove(stays).await;
    }
}

pub(crate) async fn a_job_is_not_deleted_while_a_worker_registers_it(fixture: Fixture) {
    let other = fixture.database.store().await;
    for _ in 0..ROUNDS {
        let (goes, comes) = (fixture.worker().await, fixture.worker().await);
        fixture.job(JOB, goes).await;
        let register = fixture
            .store
            .register_job(new_job(JOB, fixture.anna, Some(comes)));
        let (registered, removed, swept) = tokio::join!(
            register.commit_alone(),
            other.remove_worker(goes, None).commit_alone(),
            other.sweep(TERMS).commit_alone()
        );
        assert!(matches!(registered.unwrap(), JobRegistration::Done { .. }));
        assert!(matches!(removed.unwrap(), OwnerOutcome::Done(_)));
        swept.unwrap();
        let job = fixture.known(JOB).await.expect("somebody does it");
        assert_eq!(job.workers, [comes]);
        fixture.remove(comes).await;
    }
}

pub(crate) async fn no_task_stays_in_a_job_that_was_deleted(fixture: Fixture) {
    let other = fixture.database.store().await;
    for _ in 0..ROUNDS {
        let worker = fixture.worker().await;
        fixture.job(JOB, worker).await;
        let submit = fixture.store.submit(new_task(JOB, "r", fixture.ben));
        let (submitted, removed) = tokio::join!(
            submit.commit_alone(),
            other.remove_worker(worker, None).commit_alone()
        );
        assert!(matches!(removed.unwrap(), OwnerOutcome::Done(_)));
        match submitted.unwrap() {
            SubmitOutcome::Done(task) => {
                assert!(fixture.known(JOB).await.is_some(), "somebody waits for it");
                fixture.set(task.id, Status::Cancelled).await;
            }
            SubmitOutcome::NoJob => {}
            SubmitOutcome::NoWorkers => panic!("it did not need one"),
        }
        assert_eq!(fixture.known(JOB).await, None);
    }
    let pending = "jobs_task t WHERE t.status = 0";
    assert_eq!(fixture.database.count(pending).await, 0);
}

pub(crate) async fn a_task_is_either_cancelled_or_claimed(fixture: Fixture) {
    let other = fixture.database.store().await;
    let worker = fixture.worker_of(JOB).await;
    for _ in 0..ROUNDS {
        let task = fixture.submit(JOB).await.id;
        let cancel = fixture.update(task, fixture.ben, false, Status::Cancelled);
        let (cancelled, claimed) =
            tokio::join!(cancel, other.claim(worker, fixture.anna).commit_alone());
        let is_cancelled = matches!(cancelled, wakeline_jobs::task::UpdateOutcome::Done { .. });
        let is_claimed = matches!(claimed.unwrap(), ClaimOutcome::Task(_));
        // The task is never both cancelled and claimed.
        assert!(!(is_cancelled && is_claimed));
        let expected = if is_cancelled {
            Status::Cancelled
        } else {
            Status::Claimed
        };
        assert_eq!(fixture.task(task).await.status, expected);
    }
    let all = fixture.store.tasks(of("r"), ALL).await.unwrap();
    assert_eq!(all.total, i64::try_from(ROUNDS).unwrap());
}

/// The sweep deletes the row of a deleted job while the job is registered again. Only on
/// PostgreSQL, where sessions run concurrently.
pub(crate) async fn a_job_deleted_during_its_registration_is_created_again(fixture: Fixture) {
    let worker = fixture.worker().await;
    let old = fixture.job(JOB, worker).await;
    fixture.remove(worker).await;
    if !fixture.database.is_postgres() {
        return;
    }
    let session = fixture.database.session().await;
    let row = format!("wakeline.jobs_job WHERE id = '{}'", old.id);
    let lock = format!("BEGIN; SELECT 1 FROM {row} FOR UPDATE");
    session.batch_execute(&lock).await.unwrap();
    let register = fixture.store.register_job(new_job(JOB, fixture.anna, None));
    let sweep = async {
        while fixture.database.blocked_sessions().await == 0 {
            tokio::task::yield_now().await;
        }
        let delete = format!("DELETE FROM {row}; COMMIT");
        session.batch_execute(&delete).await.unwrap();
    };
    let (registered, ()) = tokio::join!(register.commit_alone(), sweep);
    let registered = registered.unwrap();
    let JobRegistration::Done { job, is_new, .. } = registered else {
        panic!("{registered:?}");
    };
    assert!(is_new);
    assert_ne!(job.id, old.id);
    assert_eq!(fixture.known(JOB).await, Some(job));
}
