//! Two nodes at the same moment.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use tokio::sync::Barrier;
use uuid::Uuid;
use wakeline_jobs::{
    job::Registered,
    store::Store,
    task::{Claimed, Status, Submitted},
    worker::Owned,
};
use wakeline_testkit::CommitAlone;

use crate::{
    database::Database,
    ground::{ALL, Ground, TERMS, new_job, new_task, of},
};

const JOB: &str = "r:modifiers:Rotate";
const TASKS: usize = 200;
const CLAIMERS: usize = 16;
const ROUNDS: usize = 40;

/// Until there is nothing.
async fn claim_all(store: Arc<dyn Store>, worker: Uuid, user: Uuid) -> Vec<Uuid> {
    let mut claimed = Vec::new();
    loop {
        match store.claim(worker, user).commit_alone().await.unwrap() {
            Claimed::Task(task) => claimed.push(task.id),
            Claimed::Busy => tokio::task::yield_now().await,
            Claimed::Nothing { .. } => return claimed,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn every_task_is_claimed_once(database: Database) {
    let ground = Ground::new(database).await;
    let stores = [ground.store.clone(), ground.database.store().await];
    let jobs = ["r:modifiers:a", "r:modifiers:b", "s:modifiers:c"];
    let mut workers = Vec::new();
    for number in 0..CLAIMERS {
        let worker = ground.worker().await;
        // Each does two of the three jobs.
        for job in [number, number + 1] {
            ground.job(jobs[job % jobs.len()], worker).await;
        }
        workers.push(worker);
    }
    let mut tasks = BTreeSet::new();
    for number in 0..TASKS {
        tasks.insert(ground.submit(jobs[number % jobs.len()]).await.id);
    }
    let barrier = Arc::new(Barrier::new(CLAIMERS));
    let claimers = workers.iter().enumerate().map(|(number, worker)| {
        let (store, barrier) = (stores[number % 2].clone(), barrier.clone());
        let (worker, user) = (*worker, ground.anna);
        tokio::spawn(async move {
            barrier.wait().await;
            (worker, claim_all(store, worker, user).await)
        })
    });
    let mut claimed = Vec::new();
    for claimer in join_all(claimers).await {
        let (worker, its) = claimer.unwrap();
        for task in its {
            assert_eq!(ground.task(task).await.worker, Some(worker));
            claimed.push(task);
        }
    }
    assert_eq!(claimed.len(), TASKS, "none twice");
    assert_eq!(BTreeSet::from_iter(claimed), tasks, "none lost");
}

pub(crate) async fn no_task_is_left_with_a_worker_that_is_gone(database: Database) {
    let ground = Ground::new(database).await;
    let other = ground.database.store().await;
    for _ in 0..ROUNDS {
        let (worker, stays) = (ground.worker().await, ground.worker().await);
        ground.job_with(JOB, worker, 1).await;
        ground.job_with(JOB, stays, 1).await;
        for _ in 0..3 {
            ground.submit(JOB).await;
        }
        let claim = async || {
            let mut claimed = 0;
            loop {
                match ground
                    .store
                    .claim(worker, ground.anna)
                    .commit_alone()
                    .await
                    .unwrap()
                {
                    Claimed::Task(_) => claimed += 1,
                    Claimed::Busy => tokio::task::yield_now().await,
                    _ => return claimed,
                }
            }
        };
        let (claimed, removed) =
            tokio::join!(claim(), other.remove_worker(worker, None).commit_alone());
        let Owned::Done(loss) = removed.unwrap() else {
            panic!("it was there");
        };
        assert_eq!(loss.tasks.len(), claimed, "what it had claimed went back");
        let gone = "jobs_task WHERE status IN (1, 2)
            AND NOT EXISTS (SELECT 1 FROM jobs_worker w WHERE w.id = worker_id)";
        assert_eq!(ground.database.count(gone).await, 0);
        let left = claim_all(ground.store.clone(), stays, ground.anna).await;
        assert_eq!(left.len(), 3, "all of them are there for another");
        for task in left {
            ground.set(task, Status::Cancelled).await;
        }
        ground.remove(stays).await;
    }
}

pub(crate) async fn a_job_is_not_deleted_under_who_registers_it(database: Database) {
    let ground = Ground::new(database).await;
    let other = ground.database.store().await;
    for _ in 0..ROUNDS {
        let (goes, comes) = (ground.worker().await, ground.worker().await);
        ground.job(JOB, goes).await;
        let register = ground
            .store
            .register_job(new_job(JOB, ground.anna, Some(comes)));
        let (registered, removed, swept) = tokio::join!(
            register.commit_alone(),
            other.remove_worker(goes, None).commit_alone(),
            other.sweep(TERMS).commit_alone()
        );
        assert!(matches!(registered.unwrap(), Registered::Done { .. }));
        assert!(matches!(removed.unwrap(), Owned::Done(_)));
        swept.unwrap();
        let job = ground.known(JOB).await.expect("somebody does it");
        assert_eq!(job.workers, [comes]);
        ground.remove(comes).await;
    }
}

pub(crate) async fn a_task_is_not_left_in_a_job_that_is_gone(database: Database) {
    let ground = Ground::new(database).await;
    let other = ground.database.store().await;
    for _ in 0..ROUNDS {
        let worker = ground.worker().await;
        ground.job(JOB, worker).await;
        let submit = ground.store.submit(new_task(JOB, "r", ground.ben));
        let (submitted, removed) = tokio::join!(
            submit.commit_alone(),
            other.remove_worker(worker, None).commit_alone()
        );
        assert!(matches!(removed.unwrap(), Owned::Done(_)));
        match submitted.unwrap() {
            Submitted::Done(task) => {
                assert!(ground.known(JOB).await.is_some(), "somebody waits for it");
                ground.set(task.id, Status::Cancelled).await;
            }
            Submitted::NoJob => {}
            Submitted::NoWorkers => panic!("it did not need one"),
        }
        assert_eq!(ground.known(JOB).await, None);
    }
    let pending = "jobs_task t WHERE t.status = 0";
    assert_eq!(ground.database.count(pending).await, 0);
}

pub(crate) async fn of_two_that_take_a_task_back_one_does(database: Database) {
    let ground = Ground::new(database).await;
    let other = ground.database.store().await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    for _ in 0..ROUNDS {
        let task = ground.submit(JOB).await.id;
        let cancel = ground.update(task, ground.ben, false, Status::Cancelled);
        let (cancelled, claimed) =
            tokio::join!(cancel, other.claim(worker, ground.anna).commit_alone());
        let is_cancelled = matches!(cancelled, wakeline_jobs::task::Updated::Done { .. });
        let is_claimed = matches!(claimed.unwrap(), Claimed::Task(_));
        // Busy while it is taken back, or both: never.
        assert!(!(is_cancelled && is_claimed));
        let expected = if is_cancelled {
            Status::Cancelled
        } else {
            Status::Claimed
        };
        assert_eq!(ground.task(task).await.status, expected);
    }
    let all = ground.store.tasks(of("r"), ALL).await.unwrap();
    assert_eq!(all.total, i64::try_from(ROUNDS).unwrap());
}

/// The sweep removes a deleted job for good while it is registered again. Only where sessions are
/// beside each other can it be so close.
pub(crate) async fn a_job_removed_while_it_is_registered_is_made_anew(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    let old = ground.job(JOB, worker).await;
    ground.remove(worker).await;
    if !ground.database.is_postgres() {
        return;
    }
    let session = ground.database.session().await;
    let row = format!("wakeline.jobs_job WHERE id = '{}'", old.id);
    let lock = format!("BEGIN; SELECT 1 FROM {row} FOR UPDATE");
    session.batch_execute(&lock).await.unwrap();
    let register = ground.store.register_job(new_job(JOB, ground.anna, None));
    let sweep = async {
        while ground.database.blocked_sessions().await == 0 {
            tokio::task::yield_now().await;
        }
        let delete = format!("DELETE FROM {row}; COMMIT");
        session.batch_execute(&delete).await.unwrap();
    };
    let (registered, ()) = tokio::join!(register.commit_alone(), sweep);
    let registered = registered.unwrap();
    let Registered::Done { job, is_new, .. } = registered else {
        panic!("{registered:?}");
    };
    assert!(is_new);
    assert_ne!(job.id, old.id);
    assert_eq!(ground.known(JOB).await, Some(job));
}
