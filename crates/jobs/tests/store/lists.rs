//! Pages of tasks, and their queue positions.

use uuid::Uuid;
use wakeline_jobs::{
    page::Page,
    task::{Status, TaskFilter},
};

use crate::fixture::{ALL, Fixture, of, page};

const A: &str = "r:modifiers:a";
const B: &str = "s:modifiers:b";

/// Two jobs and a worker that does both.
async fn two_jobs(fixture: &Fixture) -> Uuid {
    let worker = fixture.worker_of(A).await;
    fixture.job(B, worker).await;
    worker
}

pub(crate) async fn queue_positions_count_per_job(fixture: Fixture) {
    two_jobs(&fixture).await;
    let mut expected = Vec::new();
    for (room, job, place) in [
        ("r", A, 1),
        ("r", B, 1),
        ("s", A, 2),
        ("r", A, 3),
        ("s", B, 2),
        ("r", B, 3),
        ("r", A, 4),
    ] {
        let task = fixture.submit_to(room, job).await;
        assert_eq!(task.queue_position, Some(place));
        if room == "r" {
            expected.insert(0, (task.id, Some(place)));
        }
    }
    assert_eq!(fixture.places("r", ALL).await, expected);
    // A page that begins in the middle of the queue.
    for limit in 1..=5 {
        let mut seen = Vec::new();
        for offset in (0..5).step_by(limit) {
            let part = page(i64::try_from(limit).unwrap(), offset);
            seen.extend(fixture.places("r", part).await);
        }
        assert_eq!(seen, expected, "{limit} at once");
    }
}

pub(crate) async fn queue_positions_move_up_as_tasks_are_claimed(fixture: Fixture) {
    let worker = two_jobs(&fixture).await;
    let mut tasks = Vec::new();
    for job in [A, B, A, A, B, A] {
        tasks.insert(0, fixture.submit(job).await.id);
    }
    let expect = async |places: [Option<i64>; 6]| {
        let expected: Vec<_> = tasks.iter().copied().zip(places).collect();
        assert_eq!(fixture.places("r", ALL).await, expected);
        for (task, place) in expected {
            assert_eq!(fixture.task(task).await.queue_position, place);
        }
        let late = fixture.places("r", page(2, 0)).await;
        assert_eq!(late, [(tasks[0], places[0]), (tasks[1], places[1])]);
    };
    expect([Some(4), Some(2), Some(3), Some(2), Some(1), Some(1)]).await;
    fixture.set(tasks[3], Status::Cancelled).await;
    expect([Some(3), Some(2), Some(2), None, Some(1), Some(1)]).await;
    assert_eq!(fixture.claim(worker).await, Some(tasks[5]));
    expect([Some(2), Some(2), Some(1), None, Some(1), None]).await;
    fixture.set(tasks[0], Status::Cancelled).await;
    assert_eq!(fixture.claim(worker).await, Some(tasks[4]));
    expect([None, Some(1), Some(1), None, None, None]).await;
}

pub(crate) async fn tasks_are_filtered_by_room_job_and_state(fixture: Fixture) {
    let worker = two_jobs(&fixture).await;
    let a = fixture.known(A).await.unwrap().id;
    let mut tasks = Vec::new();
    for (room, job) in [("r", A), ("r", B), ("s", A), ("r", A), ("r", A)] {
        tasks.push(fixture.submit_to(room, job).await.id);
    }
    fixture.complete(worker).await;
    fixture.set(tasks[3], Status::Cancelled).await;
    let list = async |filter: TaskFilter, page: Page| {
        let paged = fixture.store.tasks(filter, page).await.unwrap();
        let ids: Vec<Uuid> = paged.items.iter().map(|task| task.id).collect();
        (ids, paged.total)
    };
    let all = list(of("r"), ALL).await;
    assert_eq!(all, (vec![tasks[4], tasks[3], tasks[1], tasks[0]], 4));
    assert_eq!(
        list(of("r"), page(2, 1)).await,
        (vec![tasks[3], tasks[1]], 4)
    );
    assert_eq!(list(of("r"), page(0, 0)).await, (vec![], 4));
    assert_eq!(list(of("r"), page(9, 4)).await, (vec![], 4));
    assert_eq!(list(of("nowhere"), ALL).await, (vec![], 0));
    let job = TaskFilter {
        job: Some(a),
        ..of("r")
    };
    let of_job = list(job.clone(), ALL).await;
    assert_eq!(of_job, (vec![tasks[4], tasks[3], tasks[0]], 3));
    for (status, expected) in [
        (Status::Pending, vec![tasks[4]]),
        (Status::Claimed, vec![]),
        (Status::Running, vec![]),
        (Status::Completed, vec![tasks[0]]),
        (Status::Failed, vec![]),
        (Status::Cancelled, vec![tasks[3]]),
    ] {
        let filter = TaskFilter {
            status: Some(status),
            ..job.clone()
        };
        let total = i64::try_from(expected.len()).unwrap();
        assert_eq!(list(filter, ALL).await, (expected, total), "{status}");
    }
    let pending = TaskFilter {
        status: Some(Status::Pending),
        ..of("r")
    };
    assert_eq!(list(pending, ALL).await, (vec![tasks[4], tasks[1]], 2));
}
