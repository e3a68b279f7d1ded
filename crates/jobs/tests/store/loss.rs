//! The tasks, jobs and providers of a lost worker.

use wakeline_jobs::{
    page::Page,
    task::{LostWorkers, Status, Task, UpdateOutcome},
};

use crate::fixture::{ALL, Fixture, named};

const JOB: &str = "r:modifiers:Rotate";

pub(crate) async fn the_tasks_of_a_lost_worker_fail(fixture: Fixture) {
    let (worker, other) = (fixture.worker().await, fixture.worker().await);
    fixture.job(JOB, worker).await;
    fixture.job(JOB, other).await;
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(fixture.submit(JOB).await.id);
    }
    assert_eq!(fixture.complete(worker).await, tasks[0]);
    for task in &tasks[1..3] {
        assert_eq!(fixture.claim(worker).await, Some(*task));
    }
    fixture.set(tasks[2], Status::Running).await;
    assert_eq!(fixture.claim(other).await, Some(tasks[3]));
    let before = fixture.task(tasks[2]).await;
    let mut loss = fixture.remove(worker).await;
    loss.tasks.sort_by_key(|task| task.created_at);
    let ids: Vec<_> = loss.tasks.iter().map(|task| task.id).collect();
    assert_eq!(ids, tasks[1..3]);
    assert_eq!(loss.jobs, [named(JOB)]);
    let running = &loss.tasks[1];
    let expected = Task {
        status: Status::Failed,
        worker: None,
        error: Some("Worker disconnected".to_owned()),
        completed_at: running.completed_at,
        ..before
    };
    assert!(running.completed_at.is_some() && running.started_at.is_some());
    assert_eq!(*running, expected);
    assert_eq!(fixture.task(tasks[2]).await, expected);
    assert_eq!(fixture.task(tasks[1]).await, loss.tasks[0]);
    assert_eq!(fixture.task(tasks[0]).await.status, Status::Completed);
    assert_eq!(fixture.task(tasks[3]).await.worker, Some(other));
    assert_eq!(fixture.task(tasks[4]).await.queue_position, Some(1));
    let refused = fixture.update(tasks[2], fixture.anna, false, Status::Completed);
    assert_eq!(refused.await, UpdateOutcome::NotClaimed);
}

pub(crate) async fn the_tasks_of_a_lost_worker_are_retried_as_often_as_the_job_allows(
    fixture: Fixture,
) {
    let mut worker = fixture.worker_of_retried(JOB, 2).await;
    let task = fixture.submit(JOB).await.id;
    fixture.submit(JOB).await;
    for attempt in 1..=3 {
        assert_eq!(
            fixture.claim(worker).await,
            Some(task),
            "its place is the first"
        );
        fixture.set(task, Status::Running).await;
        let loss = fixture.remove(worker).await;
        let [lost] = loss.tasks.as_slice() else {
            panic!("{loss:?}");
        };
        assert_eq!(*lost, fixture.task(task).await);
        assert_eq!(lost.worker, None);
        if attempt <= 2 {
            assert_eq!(lost.status, Status::Pending, "attempt {attempt}");
            assert_eq!(lost.queue_position, Some(1));
            assert_eq!((lost.started_at, lost.completed_at), (None, None));
            assert_eq!(lost.error, None);
        } else {
            assert_eq!(lost.status, Status::Failed);
            assert_eq!(lost.error.as_deref(), Some("Worker disconnected"));
        }
        worker = fixture.worker().await;
        fixture.job_with(JOB, worker, 2).await;
    }
    assert_ne!(fixture.claim(worker).await, Some(task));
}

pub(crate) async fn a_job_whose_tasks_are_retried_outlives_its_last_worker(fixture: Fixture) {
    let worker = fixture.worker_of_retried(JOB, 1).await;
    fixture.submit(JOB).await;
    fixture.claim(worker).await;
    fixture.remove(worker).await;
    assert!(fixture.known(JOB).await.unwrap().workers.is_empty());
}

pub(crate) async fn the_providers_and_job_links_of_a_lost_worker_are_deleted(fixture: Fixture) {
    let (worker, other) = (fixture.worker().await, fixture.worker().await);
    fixture.job(JOB, worker).await;
    fixture.job("s:modifiers:b", worker).await;
    let first = fixture.provider("r:fs:a", Some(worker)).await;
    let second = fixture.provider("@global:fs:b", Some(worker)).await;
    let stays = fixture.provider("r:fs:c", Some(other)).await;
    let mut loss = fixture.remove(worker).await;
    loss.jobs.sort();
    loss.providers.sort();
    let expected = LostWorkers {
        workers: vec![worker],
        tasks: Vec::new(),
        jobs: vec![named(JOB), named("s:modifiers:b")],
        providers: vec![
            (named("@global:fs:b"), second.id),
            (named("r:fs:a"), first.id),
        ],
    };
    assert_eq!(loss, expected);
    let scopes = vec!["r".to_owned(), "@global".to_owned()];
    let left = fixture
        .store
        .providers(scopes.into(), Page::default())
        .await;
    assert_eq!(left.unwrap().items, [stays]);
    assert_eq!(fixture.database.count("jobs_link").await, 0);
    let workers = fixture.store.workers(ALL).await.unwrap();
    assert_eq!((workers.total, workers.items[0].worker.id), (1, other));
}
