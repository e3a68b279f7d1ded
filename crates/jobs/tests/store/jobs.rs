use uuid::Uuid;
use wakeline_jobs::{
    job::{Job, NewJob, Registered},
    page::Paged,
};
use wakeline_testkit::CommitAlone;

use crate::{
    database::Database,
    ground::{ALL, Ground, named, new_job, page},
};

const JOB: &str = "r:modifiers:Rotate";

fn names(jobs: &Paged<Job>) -> Vec<String> {
    jobs.items.iter().map(|job| job.name.to_string()).collect()
}

pub(crate) async fn who_registers_without_a_worker_gets_one(database: Database) {
    let ground = Ground::new(database).await;
    let new = NewJob {
        schema: r#"{"type":"object"}"#.to_owned(),
        max_retries: 3,
        ..new_job("r:modifiers:a:b/c", ground.anna, None)
    };
    let registered = ground.store.register_job(new).commit_alone().await.unwrap();
    let Registered::Done {
        job,
        worker,
        is_new,
    } = registered
    else {
        panic!("{registered:?}");
    };
    assert!(is_new);
    let owner = ground.store.worker_owner(worker).await.unwrap();
    assert_eq!(owner, Some(ground.anna));
    let expected = Job {
        id: job.id,
        name: named("r:modifiers:a:b/c"),
        schema: r#"{"type":"object"}"#.to_owned(),
        max_retries: 3,
        workers: vec![worker],
    };
    assert_eq!(job, expected);
    assert_eq!(ground.known("r:modifiers:a:b/c").await, Some(expected));
    assert_eq!(ground.known("r:modifiers:a").await, None);
}

pub(crate) async fn several_workers_do_one_job(database: Database) {
    let ground = Ground::new(database).await;
    let one = ground.worker().await;
    let first = ground.job(JOB, one).await;
    let bens = ground
        .store
        .create_worker(ground.ben)
        .commit_alone()
        .await
        .unwrap()
        .id;
    for _ in 0..2 {
        let new = new_job(JOB, ground.ben, Some(bens));
        let again = ground.store.register_job(new).commit_alone().await.unwrap();
        let expected = Registered::Done {
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

pub(crate) async fn a_worker_of_nobody_or_another_is_refused(database: Database) {
    let ground = Ground::new(database).await;
    let annas = ground.worker().await;
    for worker in [annas, Uuid::new_v4()] {
        let new = new_job(JOB, ground.ben, Some(worker));
        let refused = ground.store.register_job(new).commit_alone().await.unwrap();
        assert_eq!(refused, Registered::NoWorker);
    }
    assert_eq!(ground.known(JOB).await, None);
}

pub(crate) async fn another_schema_is_refused(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    let job = ground.job(JOB, worker).await;
    let new = NewJob {
        schema: r#"{"a":1}"#.to_owned(),
        ..new_job(JOB, ground.ben, None)
    };
    let refused = ground.store.register_job(new).commit_alone().await.unwrap();
    assert_eq!(refused, Registered::Conflict);
    assert_eq!(ground.known(JOB).await, Some(job));
    let workers = ground.store.workers(ALL).await.unwrap();
    assert_eq!(workers.total, 1, "no worker was made for it");
}

pub(crate) async fn another_schema_of_the_servers_own_job_takes_its_place(database: Database) {
    const OWN: &str = "@internal:modifiers:Rotate";
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    let job = ground.job(OWN, worker).await;
    let new = NewJob {
        schema: r#"{"a":1}"#.to_owned(),
        ..new_job(OWN, ground.anna, Some(worker))
    };
    let registered = ground.store.register_job(new).commit_alone().await.unwrap();
    let expected = Job {
        schema: r#"{"a":1}"#.to_owned(),
        ..job
    };
    let done = Registered::Done {
        job: expected.clone(),
        worker,
        is_new: false,
    };
    assert_eq!(registered, done);
    assert_eq!(ground.known(OWN).await, Some(expected));
}

pub(crate) async fn the_last_to_register_says_how_often_it_is_retried(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job_with(JOB, worker, 1).await;
    let job = ground.job_with(JOB, worker, 5).await;
    assert_eq!(job.max_retries, 5);
    assert_eq!(ground.known(JOB).await, Some(job));
}

pub(crate) async fn they_are_listed_newest_first(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    let all = [
        "r:modifiers:a",
        "@global:modifiers:a",
        "other:modifiers:a",
        "r:analysis:a",
    ];
    for name in all {
        ground.job(name, worker).await;
    }
    let list = |scopes: &[&str], page| {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        ground.store.jobs(scopes, page)
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
