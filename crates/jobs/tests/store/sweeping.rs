use std::time::Duration;

use wakeline_jobs::task::{Status, Terms};
use wakeline_testkit::CommitAlone;

use crate::{
    database::Database,
    ground::{ALL, Ground, SECOND, TERMS, named},
};

const JOB: &str = "r:modifiers:Rotate";
const INTERNAL: &str = "@internal:modifiers:a";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What a test takes on PostgreSQL is passed there too.
fn assert_about(next: Option<i64>, seconds: i64) {
    let next = next.expect("something is over one day");
    let about = (seconds - 20) * SECOND..=seconds * SECOND;
    assert!(about.contains(&next), "{next} is not about {seconds} s");
}

pub(crate) async fn nothing_is_nothing(database: Database) {
    let ground = Ground::new(database).await;
    let swept = ground.sweep(TERMS).await;
    assert_eq!(
        (swept.next, swept.forgotten, swept.is_more),
        (None, 0, false)
    );
    assert_eq!(swept.loss, wakeline_jobs::task::Loss::default());
}

pub(crate) async fn only_a_silent_worker_is_lost(database: Database) {
    let ground = Ground::new(database).await;
    let (silent, alive) = (ground.worker().await, ground.worker().await);
    ground.job(JOB, silent).await;
    let task = ground.submit(JOB).await.id;
    ground.claim(silent).await;
    let provider = ground.provider("r:fs:a", Some(silent)).await;
    ground.database.pass(seconds(30)).await;
    let swept = ground.sweep(TERMS).await;
    assert_eq!(swept.loss, wakeline_jobs::task::Loss::default());
    assert_about(swept.next, 30);
    ground
        .store
        .heartbeat(alive, ground.anna)
        .commit_alone()
        .await
        .unwrap();
    ground.database.pass(seconds(30)).await;
    let swept = ground.sweep(TERMS).await;
    assert_eq!(swept.loss.jobs, [named(JOB)]);
    assert_eq!(swept.loss.providers, [(named("r:fs:a"), provider.id)]);
    assert_eq!(swept.loss.tasks, [ground.task(task).await]);
    assert_eq!(swept.loss.tasks[0].status, Status::Failed);
    assert!(!swept.is_more);
    assert_about(swept.next, 30);
    let workers = ground.store.workers(ALL).await.unwrap();
    assert_eq!((workers.total, workers.items[0].worker.id), (1, alive));
    assert_eq!(ground.known(JOB).await, None);
}

pub(crate) async fn a_providers_beat_is_its_workers(database: Database) {
    let ground = Ground::new(database).await;
    let provider = ground.provider("r:fs:a", None).await;
    ground.database.pass(seconds(40)).await;
    let touched = ground.store.touch_provider(provider.id, Some(ground.anna));
    touched.commit_alone().await.unwrap();
    ground.database.pass(seconds(40)).await;
    let swept = ground.sweep(TERMS).await;
    assert_eq!(swept.loss.providers, []);
    assert_about(swept.next, 20);
}

pub(crate) async fn it_is_done_in_slices(database: Database) {
    let ground = Ground::new(database).await;
    for number in 0..5 {
        let worker = ground.worker().await;
        ground.job(&format!("r:modifiers:{number}"), worker).await;
    }
    ground.database.pass(seconds(61)).await;
    let terms = Terms { limit: 2, ..TERMS };
    let mut lost = Vec::new();
    for expected in [2, 2, 1] {
        let swept = ground.sweep(terms).await;
        assert_eq!(swept.loss.jobs.len(), expected);
        assert_eq!(swept.is_more, expected == 2);
        lost.extend(swept.loss.jobs.into_iter().map(|job| job.name));
    }
    // Who was silent longest goes first.
    assert_eq!(lost, ["0", "1", "2", "3", "4"]);
}

pub(crate) async fn a_task_of_the_server_itself_may_take_too_long(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(INTERNAL, worker).await;
    ground.job(JOB, worker).await;
    let (claimed, running) = (
        ground.submit(INTERNAL).await.id,
        ground.submit(INTERNAL).await.id,
    );
    let (pending, other) = (
        ground.submit(INTERNAL).await.id,
        ground.submit(JOB).await.id,
    );
    for _ in 0..2 {
        ground.claim(worker).await;
    }
    ground.set(other, Status::Claimed).await;
    ground.database.pass(seconds(300)).await;
    ground.set(running, Status::Running).await;
    ground
        .store
        .heartbeat(worker, ground.anna)
        .commit_alone()
        .await
        .unwrap();
    let terms = Terms {
        worker: 10_000 * SECOND,
        ..TERMS
    };
    let swept = ground.sweep(terms).await;
    assert_eq!(swept.loss.tasks, []);
    assert_about(swept.next, 300);
    ground.database.pass(seconds(301)).await;
    let swept = ground.sweep(terms).await;
    assert_eq!(swept.loss.tasks, [ground.task(claimed).await]);
    let failed = &swept.loss.tasks[0];
    assert_eq!(failed.status, Status::Failed);
    assert_eq!(failed.error.as_deref(), Some("Internal worker timeout"));
    assert!(failed.completed_at.is_some());
    // The one that was started later has its time from then on.
    assert_about(swept.next, 299);
    ground.database.pass(seconds(300)).await;
    let swept = ground.sweep(terms).await;
    assert_eq!(swept.loss.tasks, [ground.task(running).await]);
    assert_eq!(ground.task(pending).await.status, Status::Pending);
    assert_eq!(ground.task(other).await.status, Status::Claimed);
}

pub(crate) async fn ended_tasks_are_forgotten(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    let mut ended = Vec::new();
    for _ in 0..3 {
        ground.submit(JOB).await;
        ended.push(ground.complete(worker).await);
    }
    let (claimed, pending) = (ground.submit(JOB).await.id, ground.submit(JOB).await.id);
    ground.claim(worker).await;
    let terms = Terms {
        worker: 100_000 * SECOND,
        limit: 2,
        ..TERMS
    };
    ground.database.pass(seconds(3_000)).await;
    let swept = ground.sweep(terms).await;
    assert_eq!((swept.forgotten, swept.is_more), (0, false));
    assert_about(swept.next, 600);
    ground.database.pass(seconds(601)).await;
    let swept = ground.sweep(terms).await;
    assert_eq!((swept.forgotten, swept.is_more), (2, true));
    // Those that ended first go first.
    assert_eq!(ground.store.task(ended[1]).await.unwrap(), None);
    assert!(ground.store.task(ended[2]).await.unwrap().is_some());
    let swept = ground.sweep(terms).await;
    assert_eq!((swept.forgotten, swept.is_more), (1, false));
    ground.database.pass(seconds(10_000)).await;
    assert_eq!(ground.sweep(terms).await.forgotten, 0);
    assert_eq!(ground.task(claimed).await.status, Status::Claimed);
    assert_eq!(ground.task(pending).await.status, Status::Pending);
}

pub(crate) async fn a_deleted_job_goes_with_its_last_task(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    ground.job("r:modifiers:never", worker).await;
    let stays = ground.worker().await;
    ground.job("r:modifiers:stays", stays).await;
    ground.submit(JOB).await;
    ground.complete(worker).await;
    ground.remove(worker).await;
    let count = || ground.database.count("jobs_job");
    assert_eq!(count().await, 3);
    ground.sweep(TERMS).await;
    assert_eq!(count().await, 2, "the one that never had a task is gone");
    ground.database.pass(seconds(3_601)).await;
    ground
        .store
        .heartbeat(stays, ground.anna)
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(ground.sweep(TERMS).await.forgotten, 1);
    assert_eq!(count().await, 1);
    assert!(ground.known("r:modifiers:stays").await.is_some());
}
