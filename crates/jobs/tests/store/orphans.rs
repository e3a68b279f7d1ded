//! Jobs without workers.

use wakeline_jobs::{
    job::{JobRegistration, NewJob},
    task::{Status, SubmitOutcome, UpdateOutcome},
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, named, new_job, new_task};

const JOB: &str = "r:modifiers:Rotate";

pub(crate) async fn a_job_without_tasks_is_deleted_with_its_last_worker(fixture: Fixture) {
    let (one, other) = (fixture.worker().await, fixture.worker().await);
    fixture.job(JOB, one).await;
    fixture.job(JOB, other).await;
    assert_eq!(fixture.remove(one).await.jobs, [named(JOB)]);
    assert_eq!(fixture.known(JOB).await.unwrap().workers, [other]);
    assert_eq!(fixture.remove(other).await.jobs, [named(JOB)]);
    assert_eq!(fixture.known(JOB).await, None);
    let listed = fixture.store.jobs(vec!["r".to_owned()], ALL).await.unwrap();
    assert_eq!((listed.items.len(), listed.total), (0, 0));
    let refused = fixture
        .store
        .submit(new_task(JOB, "r", fixture.ben))
        .commit_alone()
        .await;
    assert_eq!(refused.unwrap(), SubmitOutcome::NoJob);
}

pub(crate) async fn a_job_with_pending_tasks_outlives_its_last_worker(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    let (first, second) = (fixture.submit(JOB).await.id, fixture.submit(JOB).await.id);
    fixture.remove(worker).await;
    assert!(fixture.known(JOB).await.unwrap().workers.is_empty());
    let UpdateOutcome::Done { orphan, .. } = fixture.set(first, Status::Cancelled).await else {
        panic!("it was pending");
    };
    assert_eq!(orphan, None, "somebody still waits");
    let UpdateOutcome::Done { orphan, .. } = fixture.set(second, Status::Cancelled).await else {
        panic!("it was pending");
    };
    assert_eq!(orphan, Some(named(JOB)));
    assert_eq!(fixture.known(JOB).await, None);
}

pub(crate) async fn a_job_with_workers_is_no_orphan(fixture: Fixture) {
    fixture.worker_of(JOB).await;
    let task = fixture.submit(JOB).await.id;
    let UpdateOutcome::Done { orphan, .. } = fixture.set(task, Status::Cancelled).await else {
        panic!("it was pending");
    };
    assert_eq!(orphan, None);
    assert!(fixture.known(JOB).await.is_some());
}

pub(crate) async fn an_internal_job_outlives_its_last_worker(fixture: Fixture) {
    let worker = fixture.worker_of("@internal:modifiers:a").await;
    fixture.remove(worker).await;
    assert!(fixture.known("@internal:modifiers:a").await.is_some());
}

pub(crate) async fn a_deleted_job_may_be_registered_with_another_schema(fixture: Fixture) {
    let worker = fixture.worker().await;
    let job = fixture.job(JOB, worker).await;
    fixture.submit(JOB).await;
    let ended = fixture.complete(worker).await;
    fixture.remove(worker).await;
    assert_eq!(fixture.known(JOB).await, None);
    let new = NewJob {
        schema: r#"{"a":1}"#.to_owned(),
        max_retries: 2,
        ..new_job(JOB, fixture.ben, None)
    };
    let registered = fixture.store.register_job(new).done().await;
    let JobRegistration::Done {
        job: back,
        worker,
        is_new,
    } = registered
    else {
        panic!("{registered:?}");
    };
    assert!(is_new);
    assert_eq!((back.id, back.schema.as_str()), (job.id, r#"{"a":1}"#));
    assert_eq!((back.max_retries, &back.workers), (2, &vec![worker]));
    assert_eq!(fixture.known(JOB).await, Some(back));
    assert_eq!(fixture.task(ended).await.job_name, JOB);
}

pub(crate) async fn a_job_that_outlives_its_workers_keeps_its_schema(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    let task = fixture.submit(JOB).await.id;
    fixture.remove(worker).await;
    let new = NewJob {
        schema: r#"{"a":1}"#.to_owned(),
        ..new_job(JOB, fixture.anna, None)
    };
    let refused = fixture.store.register_job(new).done().await;
    assert_eq!(refused, JobRegistration::Conflict);
    let worker = fixture.worker().await;
    let new = new_job(JOB, fixture.anna, Some(worker));
    let registered = fixture.store.register_job(new).done().await;
    assert!(matches!(
        registered,
        JobRegistration::Done { is_new: false, .. }
    ));
    assert_eq!(fixture.claim(worker).await, Some(task));
}
