use std::time::Duration;

use wakeline_jobs::task::{Status, SweepAges};
use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, SECOND, TERMS, named};

const JOB: &str = "r:modifiers:Rotate";
const INTERNAL: &str = "@internal:modifiers:a";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// On PostgreSQL the time of the test itself passes too.
fn assert_about(next: Option<i64>, seconds: i64) {
    let next = next.expect("something is over one day");
    let about = (seconds - 20) * SECOND..=seconds * SECOND;
    assert!(about.contains(&next), "{next} is not about {seconds} s");
}

pub(crate) async fn a_sweep_of_an_empty_store_deletes_nothing(fixture: Fixture) {
    let swept = fixture.sweep(TERMS).await;
    assert_eq!(
        (swept.next, swept.deleted_tasks, swept.is_more),
        (None, 0, false)
    );
    assert_eq!(swept.loss, wakeline_jobs::task::LostWorkers::default());
}

pub(crate) async fn only_a_silent_worker_is_lost(fixture: Fixture) {
    let (silent, alive) = (fixture.worker().await, fixture.worker().await);
    fixture.job(JOB, silent).await;
    let task = fixture.submit(JOB).await.id;
    fixture.claim(silent).await;
    let provider = fixture.provider("r:fs:a", Some(silent)).await;
    fixture.database.pass(seconds(30)).await;
    let swept = fixture.sweep(TERMS).await;
    assert_eq!(swept.loss, wakeline_jobs::task::LostWorkers::default());
    assert_about(swept.next, 30);
    fixture.store.heartbeat(alive, fixture.anna).done().await;
    fixture.database.pass(seconds(30)).await;
    let swept = fixture.sweep(TERMS).await;
    assert_eq!(swept.loss.jobs, [named(JOB)]);
    assert_eq!(swept.loss.providers, [(named("r:fs:a"), provider.id)]);
    assert_eq!(swept.loss.tasks, [fixture.task(task).await]);
    assert_eq!(swept.loss.tasks[0].status, Status::Failed);
    assert!(!swept.is_more);
    assert_about(swept.next, 30);
    let workers = fixture.store.workers(ALL).await.unwrap();
    assert_eq!((workers.total, workers.items[0].worker.id), (1, alive));
    assert_eq!(fixture.known(JOB).await, None);
}

pub(crate) async fn a_heartbeat_of_a_provider_is_one_of_its_worker(fixture: Fixture) {
    let provider = fixture.provider("r:fs:a", None).await;
    fixture.database.pass(seconds(40)).await;
    let touched = fixture
        .store
        .touch_provider(provider.id, Some(fixture.anna));
    touched.done().await;
    fixture.database.pass(seconds(40)).await;
    let swept = fixture.sweep(TERMS).await;
    assert_eq!(swept.loss.providers, []);
    assert_about(swept.next, 20);
}

pub(crate) async fn a_sweep_removes_a_limited_number_of_workers(fixture: Fixture) {
    for number in 0..5 {
        let worker = fixture.worker().await;
        fixture.job(&format!("r:modifiers:{number}"), worker).await;
    }
    fixture.database.pass(seconds(61)).await;
    let terms = SweepAges { limit: 2, ..TERMS };
    let mut lost = Vec::new();
    for expected in [2, 2, 1] {
        let swept = fixture.sweep(terms).await;
        assert_eq!(swept.loss.jobs.len(), expected);
        assert_eq!(swept.is_more, expected == 2);
        lost.extend(swept.loss.jobs.into_iter().map(|job| job.name));
    }
    // The worker that was silent longest is removed first.
    assert_eq!(lost, ["0", "1", "2", "3", "4"]);
}

pub(crate) async fn an_internal_task_over_its_time_fails(fixture: Fixture) {
    let worker = fixture.worker_of(INTERNAL).await;
    fixture.job(JOB, worker).await;
    let (claimed, running) = (
        fixture.submit(INTERNAL).await.id,
        fixture.submit(INTERNAL).await.id,
    );
    let (pending, other) = (
        fixture.submit(INTERNAL).await.id,
        fixture.submit(JOB).await.id,
    );
    for _ in 0..2 {
        fixture.claim(worker).await;
    }
    fixture.set(other, Status::Claimed).await;
    fixture.database.pass(seconds(300)).await;
    fixture.set(running, Status::Running).await;
    fixture.store.heartbeat(worker, fixture.anna).done().await;
    let terms = SweepAges {
        worker: 10_000 * SECOND,
        ..TERMS
    };
    let swept = fixture.sweep(terms).await;
    assert_eq!(swept.loss.tasks, []);
    assert_about(swept.next, 300);
    fixture.database.pass(seconds(301)).await;
    let swept = fixture.sweep(terms).await;
    assert_eq!(swept.loss.tasks, [fixture.task(claimed).await]);
    let failed = &swept.loss.tasks[0];
    assert_eq!(failed.status, Status::Failed);
    assert_eq!(failed.error.as_deref(), Some("Internal worker timeout"));
    assert!(failed.completed_at.is_some());
    // The time of the task that was started later counts from its start.
    assert_about(swept.next, 299);
    fixture.database.pass(seconds(300)).await;
    let swept = fixture.sweep(terms).await;
    assert_eq!(swept.loss.tasks, [fixture.task(running).await]);
    assert_eq!(fixture.task(pending).await.status, Status::Pending);
    assert_eq!(fixture.task(other).await.status, Status::Claimed);
}

pub(crate) async fn ended_tasks_are_deleted_after_their_time(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    let mut ended = Vec::new();
    for _ in 0..3 {
        fixture.submit(JOB).await;
        ended.push(fixture.complete(worker).await);
    }
    let (claimed, pending) = (fixture.submit(JOB).await.id, fixture.submit(JOB).await.id);
    fixture.claim(worker).await;
    let terms = SweepAges {
        worker: 100_000 * SECOND,
        limit: 2,
        ..TERMS
    };
    fixture.database.pass(seconds(3_000)).await;
    let swept = fixture.sweep(terms).await;
    assert_eq!((swept.deleted_tasks, swept.is_more), (0, false));
    assert_about(swept.next, 600);
    fixture.database.pass(seconds(601)).await;
    let swept = fixture.sweep(terms).await;
    assert_eq!((swept.deleted_tasks, swept.is_more), (2, true));
    // The tasks that ended first are deleted first.
    assert_eq!(fixture.store.task(ended[1]).await.unwrap(), None);
    assert!(fixture.store.task(ended[2]).await.unwrap().is_some());
    let swept = fixture.sweep(terms).await;
    assert_eq!((swept.deleted_tasks, swept.is_more), (1, false));
    fixture.database.pass(seconds(10_000)).await;
    assert_eq!(fixture.sweep(terms).await.deleted_tasks, 0);
    assert_eq!(fixture.task(claimed).await.status, Status::Claimed);
    assert_eq!(fixture.task(pending).await.status, Status::Pending);
}

pub(crate) async fn the_row_of_a_deleted_job_goes_with_its_last_task(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    fixture.job("r:modifiers:never", worker).await;
    let stays = fixture.worker().await;
    fixture.job("r:modifiers:stays", stays).await;
    fixture.submit(JOB).await;
    fixture.complete(worker).await;
    fixture.remove(worker).await;
    let count = || fixture.database.count("jobs_job");
    assert_eq!(count().await, 3);
    fixture.sweep(TERMS).await;
    assert_eq!(count().await, 2, "the one that never had a task is gone");
    fixture.database.pass(seconds(3_601)).await;
    fixture.store.heartbeat(stays, fixture.anna).done().await;
    assert_eq!(fixture.sweep(TERMS).await.deleted_tasks, 1);
    assert_eq!(count().await, 1);
    assert!(fixture.known("r:modifiers:stays").await.is_some());
}
