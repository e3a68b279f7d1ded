use uuid::Uuid;
use wakeline_jobs::{
    job::{Job, JobRegistration, NewJob},
    page::ListPage,
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, named, new_job, page};

const JOB: &str = "r:modifiers:Rotate";

fn names(jobs: &ListPage<Job>) -> Vec<String> {
    jobs.items.iter().map(|job| job.name.to_string()).collect()
}

pub(crate) async fn a_registration_without_a_worker_creates_one(fixture: Fixture) {
    let new = NewJob {
        schema: r#"{"type":"object"}"#.to_owned(),
        max_retries: 3,
        ..new_job("r:modifiers:a:b/c", fixture.anna, None)
    };
    let registered = fixture.store.register_job(new).done().await;
    let JobRegistration::Done {
        job,
        worker,
        is_new,
    } = registered
    else {
        panic!("{registered:?}");
    };
    assert!(is_new);
    let owner = fixture.store.worker_owner(worker).await.unwrap();
    assert_eq!(owner, Some(fixture.anna));
    let expected = Job {
        id: job.id,
        name: named("r:modifiers:a:b/c"),
        schema: r#"{"type":"object"}"#.to_owned(),
        max_retries: 3,
        workers: vec![worker],
    };
    assert_eq!(job, expected);
    assert_eq!(fixture.known("r:modifiers:a:b/c").await, Some(expected));
    assert_eq!(fixture.known("r:modifiers:a").await, None);
}

pub(crate) async fn several_workers_register_one_job(fixture: Fixture) {
    let one = fixture.worker().await;
    let first = fixture.job(JOB, one).await;
    let bens = fixture.store.create_worker(fixture.ben).done().await.id;
    for _ in 0..2 {
        let new = new_job(JOB, fixture.ben, Some(bens));
        let again = fixture.store.register_job(new).done().await;
        let expected = JobRegistration::Done {
            job: Job {
                workers: vec![one, bens],
                ..first.clone()
            },
            worker: bens,
            is_new: false,
        };
        assert_eq!(again, expected);
    }
}

pub(crate) async fn an_unknown_or_foreign_worker_is_refused(fixture: Fixture) {
    let annas = fixture.worker().await;
    for worker in [annas, Uuid::new_v4()] {
        let new = new_job(JOB, fixture.ben, Some(worker));
        let refused = fixture.store.register_job(new).done().await;
        assert_eq!(refused, JobRegistration::NoWorker);
    }
    assert_eq!(fixture.known(JOB).await, None);
}

pub(crate) async fn another_schema_is_refused(fixture: Fixture) {
    let worker = fixture.worker().await;
    let job = fixture.job(JOB, worker).await;
    let new = NewJob {
        schema: r#"{"a":1}"#.to_owned(),
        ..new_job(JOB, fixture.ben, None)
    };
    let refused = fixture.store.register_job(new).done().await;
    assert_eq!(refused, JobRegistration::Conflict);
    assert_eq!(fixture.known(JOB).await, Some(job));
    let workers = fixture.store.workers(ALL).await.unwrap();
    assert_eq!(workers.total, 1, "no worker was made for it");
}

pub(crate) async fn a_new_schema_of_an_internal_job_replaces_the_old_one(fixture: Fixture) {
    const OWN: &str = "@internal:modifiers:Rotate";
    let worker = fixture.worker().await;
    let job = fixture.job(OWN, worker).await;
    let new = NewJob {
        schema: r#"{"a":1}"#.to_owned(),
        ..new_job(OWN, fixture.anna, Some(worker))
    };
    let registered = fixture.store.register_job(new).done().await;
    let expected = Job {
        schema: r#"{"a":1}"#.to_owned(),
        ..job
    };
    let done = JobRegistration::Done {
        job: expected.clone(),
        worker,
        is_new: false,
    };
    assert_eq!(registered, done);
    assert_eq!(fixture.known(OWN).await, Some(expected));
}

pub(crate) async fn the_last_registration_sets_the_number_of_retries(fixture: Fixture) {
    let worker = fixture.worker_of_retried(JOB, 1).await;
    let job = fixture.job_with(JOB, worker, 5).await;
    assert_eq!(job.max_retries, 5);
    assert_eq!(fixture.known(JOB).await, Some(job));
}

pub(crate) async fn jobs_are_listed_newest_first(fixture: Fixture) {
    let worker = fixture.worker().await;
    let all = [
        "r:modifiers:a",
        "@global:modifiers:a",
        "other:modifiers:a",
        "r:analysis:a",
    ];
    for name in all {
        fixture.job(name, worker).await;
    }
    let list = |scopes: &[&str], page| {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        fixture.store.jobs(scopes, page)
    };
    let seen = list(&["r", "@global"], ALL).await.unwrap();
    let expected = ["r:analysis:a", "@global:modifiers:a", "r:modifiers:a"];
    assert_eq!(
        (names(&seen), seen.total),
        (expected.map(String::from).to_vec(), 3)
    );
    assert!(seen.items.iter().all(|job| job.workers == [worker]));
    let part = list(&["r", "@global"], page(1, 1)).await.unwrap();
    assert_eq!(
        (names(&part), part.total),
        (vec![expected[1].to_owned()], 3)
    );
    let none = list(&["r"], page(0, 0)).await.unwrap();
    assert_eq!((none.items.len(), none.total), (0, 2));
    let past = list(&["r"], page(5, 2)).await.unwrap();
    assert_eq!((past.items.len(), past.total), (0, 2));
    let nothing = list(&["nowhere"], ALL).await.unwrap();
    assert_eq!((nothing.items.len(), nothing.total), (0, 0));
}
