//! Jobs that nobody does.

use wakeline_jobs::{
    job::{NewJob, Registered},
    task::{Status, Submitted, Updated},
};
use wakeline_testkit::CommitAlone;

use crate::{
    database::Database,
    ground::{ALL, Ground, named, new_job, new_task},
};

const JOB: &str = "r:modifiers:Rotate";

pub(crate) async fn with_its_last_worker_it_is_gone(database: Database) {
    let ground = Ground::new(database).await;
    let (one, other) = (ground.worker().await, ground.worker().await);
    ground.job(JOB, one).await;
    ground.job(JOB, other).await;
    assert_eq!(ground.remove(one).await.jobs, [named(JOB)]);
    assert_eq!(ground.known(JOB).await.unwrap().workers, [other]);
    assert_eq!(ground.remove(other).await.jobs, [named(JOB)]);
    assert_eq!(ground.known(JOB).await, None);
    let listed = ground.store.jobs(vec!["r".to_owned()], ALL).await.unwrap();
    assert_eq!((listed.items.len(), listed.total), (0, 0));
    let refused = ground
        .store
        .submit(new_task(JOB, "r", ground.ben))
        .commit_alone()
        .await;
    assert_eq!(refused.unwrap(), Submitted::NoJob);
}

pub(crate) async fn while_somebody_waits_for_it_it_stays(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    let (first, second) = (ground.submit(JOB).await.id, ground.submit(JOB).await.id);
    ground.remove(worker).await;
    assert!(ground.known(JOB).await.unwrap().workers.is_empty());
    let Updated::Done { orphan, .. } = ground.set(first, Status::Cancelled).await else {
        panic!("it was pending");
    };
    assert_eq!(orphan, None, "somebody still waits");
    let Updated::Done { orphan, .. } = ground.set(second, Status::Cancelled).await else {
        panic!("it was pending");
    };
    assert_eq!(orphan, Some(named(JOB)));
    assert_eq!(ground.known(JOB).await, None);
}

pub(crate) async fn a_job_with_workers_is_no_orphan(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    let task = ground.submit(JOB).await.id;
    let Updated::Done { orphan, .. } = ground.set(task, Status::Cancelled).await else {
        panic!("it was pending");
    };
    assert_eq!(orphan, None);
    assert!(ground.known(JOB).await.is_some());
}

pub(crate) async fn what_the_server_does_itself_stays(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job("@internal:modifiers:a", worker).await;
    ground.remove(worker).await;
    assert!(ground.known("@internal:modifiers:a").await.is_some());
}

pub(crate) async fn it_comes_back_with_another_schema(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    let job = ground.job(JOB, worker).await;
    ground.submit(JOB).await;
    let ended = ground.complete(worker).await;
    ground.remove(worker).await;
    assert_eq!(ground.known(JOB).await, None);
    let new = NewJob {
        schema: r#"{"a":1}"#.to_owned(),
        max_retries: 2,
        ..new_job(JOB, ground.ben, None)
    };
    let registered = ground.store.register_job(new).commit_alone().await.unwrap();
    let Registered::Done {
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
    assert_eq!(ground.known(JOB).await, Some(back));
    assert_eq!(ground.task(ended).await.job_name, JOB);
}

pub(crate) async fn while_it_stays_its_schema_does(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    let task = ground.submit(JOB).await.id;
    ground.remove(worker).await;
    let new = NewJob {
        schema: r#"{"a":1}"#.to_owned(),
        ..new_job(JOB, ground.anna, None)
    };
    let refused = ground.store.register_job(new).commit_alone().await.unwrap();
    assert_eq!(refused, Registered::Conflict);
    let worker = ground.worker().await;
    let new = new_job(JOB, ground.anna, Some(worker));
    let registered = ground.store.register_job(new).commit_alone().await.unwrap();
    assert!(matches!(registered, Registered::Done { is_new: false, .. }));
    assert_eq!(ground.claim(worker).await, Some(task));
}
