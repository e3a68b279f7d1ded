use uuid::Uuid;
use wakeline_jobs::task::{
    ClaimOutcome, NewTask, Status, SubmitOutcome, Task, TaskUpdate, UpdateOutcome,
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{Fixture, new_job, new_task};

const JOB: &str = "r:modifiers:Rotate";

pub(crate) async fn a_task_is_as_it_was_submitted(fixture: Fixture) {
    let job = fixture.job(JOB, fixture.worker().await).await;
    let new = new_task(JOB, "elsewhere", fixture.ben);
    let SubmitOutcome::Done(task) = fixture.store.submit(new.clone()).done().await else {
        panic!("there is such a job");
    };
    let expected = Task {
        id: new.id,
        job: job.id,
        job_name: JOB.to_owned(),
        room: "elsewhere".to_owned(),
        status: Status::Pending,
        created_at: task.created_at,
        started_at: None,
        completed_at: None,
        worker: None,
        error: None,
        payload: new.payload,
        queue_position: Some(1),
    };
    assert_eq!(task, expected);
    assert_eq!(fixture.task(new.id).await, expected);
    assert_eq!(fixture.store.task(Uuid::new_v4()).await.unwrap(), None);
}

pub(crate) async fn without_a_job_there_is_no_task(fixture: Fixture) {
    let new = new_task(JOB, "r", fixture.ben);
    let refused = fixture.store.submit(new.clone()).done().await;
    assert_eq!(refused, SubmitOutcome::NoJob);
    assert_eq!(fixture.store.task(new.id).await.unwrap(), None);
}

pub(crate) async fn a_task_that_needs_a_worker_is_refused_without_one(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    let needing = || NewTask {
        needs_worker: true,
        ..new_task(JOB, "r", fixture.ben)
    };
    let taken = fixture.store.submit(needing()).done().await;
    assert!(matches!(taken, SubmitOutcome::Done(_)), "{taken:?}");
    // The job stays because it has a pending task.
    fixture.remove(worker).await;
    let refused = fixture.store.submit(needing()).done().await;
    assert_eq!(refused, SubmitOutcome::NoWorkers);
    fixture.submit(JOB).await;
}

pub(crate) async fn only_the_owner_of_a_worker_claims_for_it(fixture: Fixture) {
    let worker = fixture.worker().await;
    let (b, a) = (
        fixture.job("r:modifiers:b", worker).await,
        fixture.job("r:modifiers:a", worker).await,
    );
    fixture
        .job("r:modifiers:other", fixture.worker().await)
        .await;
    let mut jobs = vec![a.id, b.id];
    jobs.sort_unstable();
    let claim = |worker, user| fixture.store.claim(worker, user);
    let nothing = claim(worker, fixture.anna).done().await;
    assert_eq!(nothing, ClaimOutcome::Nothing { jobs });
    let foreign = claim(worker, fixture.ben).done().await;
    assert_eq!(foreign, ClaimOutcome::NotOwner);
    let unknown = claim(Uuid::new_v4(), fixture.anna).done().await;
    assert_eq!(unknown, ClaimOutcome::NoWorker);
    let idle = fixture.worker().await;
    let without = claim(idle, fixture.anna).done().await;
    assert_eq!(without, ClaimOutcome::Nothing { jobs: Vec::new() });
    let task = fixture.submit("r:modifiers:a").await;
    assert_eq!(
        claim(worker, fixture.ben).done().await,
        ClaimOutcome::NotOwner
    );
    let claimed = claim(worker, fixture.anna).done().await;
    let expected = Task {
        status: Status::Claimed,
        worker: Some(worker),
        queue_position: None,
        ..task
    };
    assert_eq!(claimed, ClaimOutcome::Task(expected.clone()));
    assert_eq!(fixture.task(expected.id).await, expected);
}

pub(crate) async fn the_task_that_waited_longest_is_claimed_first(fixture: Fixture) {
    let (both, one) = (fixture.worker().await, fixture.worker().await);
    fixture.job("r:modifiers:a", both).await;
    fixture.job("s:modifiers:b", both).await;
    fixture.job("s:modifiers:b", one).await;
    let mut tasks = Vec::new();
    for (room, job) in [
        ("r", "r:modifiers:a"),
        ("r", "s:modifiers:b"),
        ("s", "s:modifiers:b"),
        ("t", "r:modifiers:a"),
        ("r", "s:modifiers:b"),
        ("s", "r:modifiers:a"),
    ] {
        tasks.push(fixture.submit_to(room, job).await.id);
    }
    // One of the workers has only the second job.
    assert_eq!(fixture.claim(one).await, Some(tasks[1]));
    for task in [0, 2, 3, 4, 5] {
        assert_eq!(fixture.claim(both).await, Some(tasks[task]), "{task}");
    }
    assert_eq!(fixture.claim(both).await, None);
    assert_eq!(fixture.claim(one).await, None);
}

/// A task in this state, reached by the usual transitions.
async fn put(fixture: &Fixture, worker: Uuid, status: Status) -> Uuid {
    let task = fixture.submit(JOB).await.id;
    if status == Status::Pending {
        return task;
    }
    assert_eq!(fixture.claim(worker).await, Some(task));
    let way: &[Status] = match status {
        Status::Completed => &[Status::Running, Status::Completed],
        Status::Claimed => &[],
        _ => &[status],
    };
    for next in way {
        let updated = fixture.set(task, *next).await;
        assert!(matches!(updated, UpdateOutcome::Done { .. }), "{updated:?}");
    }
    task
}

pub(crate) async fn a_released_task_gets_its_place_in_the_queue_back(fixture: Fixture) {
    let (worker, other) = (fixture.worker().await, fixture.worker().await);
    fixture.job(JOB, worker).await;
    let (first, second) = (fixture.submit(JOB).await, fixture.submit(JOB).await);
    let unclaim = async |worker| fixture.store.unclaim(first.id, worker).done().await;
    assert_eq!(unclaim(worker).await, None, "nobody has it");
    assert_eq!(fixture.claim(worker).await, Some(first.id));
    assert_eq!(unclaim(other).await, None, "another has it");
    assert_eq!(unclaim(worker).await, Some(first.clone()));
    assert_eq!(unclaim(worker).await, None, "it is back already");
    assert_eq!(fixture.task(second.id).await.queue_position, Some(2));
    assert_eq!(fixture.claim(worker).await, Some(first.id));
    fixture.set(first.id, Status::Running).await;
    assert_eq!(unclaim(worker).await, None, "it has begun");
    assert_eq!(fixture.task(first.id).await.worker, Some(worker));
    fixture.set(first.id, Status::Completed).await;
    assert_eq!(unclaim(worker).await, None, "it is over");
}

pub(crate) async fn a_released_claim_costs_no_retry(fixture: Fixture) {
    let worker = fixture.worker_of_retried(JOB, 1).await;
    let task = fixture.submit(JOB).await.id;
    fixture.claim(worker).await;
    fixture.store.unclaim(task, worker).done().await;
    fixture.claim(worker).await;
    fixture.remove(worker).await;
    assert_eq!(fixture.task(task).await.status, Status::Pending);
}

pub(crate) async fn only_allowed_transitions_between_states_are_done(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    for from in Status::ALL {
        for to in Status::ALL {
            let task = put(&fixture, worker, from).await;
            let before = fixture.task(task).await;
            let updated = fixture.set(task, to).await;
            let after = fixture.task(task).await;
            if from.leads_to(to) {
                let UpdateOutcome::Done { task, orphan } = updated else {
                    panic!("{from} → {to}: {updated:?}");
                };
                assert_eq!((&task, task.status, orphan), (&after, to, None));
                let starts = to == Status::Running;
                assert_eq!(
                    after.started_at.is_some(),
                    starts || before.started_at.is_some()
                );
                assert_eq!(after.completed_at.is_some(), to.is_terminal());
                assert_eq!(after.worker, before.worker);
            } else {
                assert_eq!(
                    updated,
                    UpdateOutcome::NoSuchTransition(from),
                    "{from} → {to}"
                );
                assert_eq!(after, before);
            }
            // The next task finds an empty queue.
            fixture.set(task, Status::Cancelled).await;
        }
    }
    let unknown = fixture.set(Uuid::new_v4(), Status::Cancelled).await;
    assert_eq!(unknown, UpdateOutcome::NotFound);
}

pub(crate) async fn only_the_owner_of_its_worker_updates_a_task(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    let task = fixture.submit(JOB).await.id;
    let update = |user, status| fixture.update(task, user, false, status);
    let unclaimed = update(fixture.anna, Status::Claimed).await;
    assert_eq!(unclaimed, UpdateOutcome::NotClaimed);
    fixture.claim(worker).await;
    // The submitter has no right any more; rights are checked before the transition.
    for status in [Status::Cancelled, Status::Completed, Status::Pending] {
        assert_eq!(update(fixture.ben, status).await, UpdateOutcome::NotOwner);
    }
    let done = update(fixture.anna, Status::Running).await;
    assert!(matches!(done, UpdateOutcome::Done { .. }), "{done:?}");
    let done = fixture
        .update(task, fixture.ben, true, Status::Failed)
        .await;
    assert!(matches!(done, UpdateOutcome::Done { .. }), "{done:?}");
}

/// A lost worker that does not know of its loss may belong to the same user as the worker that has
/// the task now.
pub(crate) async fn an_update_with_a_worker_id_needs_that_worker_to_have_the_task(
    fixture: Fixture,
) {
    let (lost, worker) = (fixture.worker().await, fixture.worker().await);
    fixture.job_with(JOB, lost, 1).await;
    fixture.job_with(JOB, worker, 1).await;
    let task = fixture.submit(JOB).await.id;
    let update = async |worker, status| {
        let update = TaskUpdate {
            task,
            user: fixture.anna,
            is_superuser: false,
            status,
            error: None,
            worker: Some(worker),
        };
        fixture.store.update(update).done().await
    };
    let is_done = |updated: &UpdateOutcome| matches!(updated, UpdateOutcome::Done { .. });
    assert_eq!(fixture.claim(lost).await, Some(task));
    assert!(is_done(&update(lost, Status::Running).await));
    fixture.remove(lost).await;
    let other = update(lost, Status::Completed).await;
    assert_eq!(other, UpdateOutcome::WrongWorker, "nobody has it");
    assert_eq!(fixture.claim(worker).await, Some(task));
    assert!(is_done(&update(worker, Status::Running).await));
    let other = update(lost, Status::Completed).await;
    assert_eq!(other, UpdateOutcome::WrongWorker);
    assert_eq!(fixture.task(task).await.status, Status::Running);
    assert!(is_done(&update(worker, Status::Completed).await));
}

pub(crate) async fn a_submitter_cancels_a_task_while_it_is_pending(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    let task = fixture.submit(JOB).await.id;
    let update = |user, status| fixture.update(task, user, false, status);
    let foreign = update(fixture.anna, Status::Cancelled).await;
    assert_eq!(foreign, UpdateOutcome::NotClaimed);
    // The submitter may do nothing but cancel it.
    assert_eq!(
        update(fixture.ben, Status::Claimed).await,
        UpdateOutcome::NotClaimed
    );
    let UpdateOutcome::Done { task: seen, .. } = update(fixture.ben, Status::Cancelled).await
    else {
        panic!("it is his");
    };
    assert_eq!(
        (seen.status, seen.queue_position),
        (Status::Cancelled, None)
    );
    assert_eq!(
        update(fixture.ben, Status::Cancelled).await,
        UpdateOutcome::NotClaimed
    );
    assert_eq!(fixture.claim(worker).await, None);
}

pub(crate) async fn the_end_of_a_task_keeps_its_error(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    let task = fixture.submit(JOB).await.id;
    let say = |status, error: Option<&str>| {
        let update = TaskUpdate {
            task,
            user: fixture.anna,
            is_superuser: false,
            status,
            error: error.map(str::to_owned),
            worker: None,
        };
        fixture.store.update(update)
    };
    fixture.claim(worker).await;
    say(Status::Running, Some("too early")).done().await;
    assert_eq!(fixture.task(task).await.error, None);
    say(Status::Failed, Some("it broke")).done().await;
    assert_eq!(fixture.task(task).await.error.as_deref(), Some("it broke"));
    let other = fixture.submit(JOB).await.id;
    fixture.claim(worker).await;
    let update = TaskUpdate {
        task: other,
        user: fixture.anna,
        is_superuser: false,
        status: Status::Failed,
        error: Some(String::new()),
        worker: None,
    };
    fixture.store.update(update).done().await;
    assert_eq!(
        fixture.task(other).await.error,
        None,
        "no words are no reason"
    );
}

pub(crate) async fn a_task_that_a_superuser_claims_has_no_worker(fixture: Fixture) {
    let worker = fixture.worker_of(JOB).await;
    let task = fixture.submit(JOB).await.id;
    let done = fixture.set(task, Status::Claimed).await;
    assert!(matches!(done, UpdateOutcome::Done { .. }), "{done:?}");
    assert_eq!(fixture.task(task).await.worker, None);
    assert_eq!(fixture.claim(worker).await, None);
    let refused = fixture
        .update(task, fixture.anna, false, Status::Running)
        .await;
    assert_eq!(refused, UpdateOutcome::NotClaimed);
}

pub(crate) async fn a_worker_that_registers_later_claims_older_tasks(fixture: Fixture) {
    let (first, second) = (fixture.worker().await, fixture.worker().await);
    fixture.job(JOB, first).await;
    let task = fixture.submit(JOB).await.id;
    assert_eq!(fixture.claim(second).await, None);
    let new = new_job(JOB, fixture.anna, Some(second));
    fixture.store.register_job(new).done().await;
    assert_eq!(fixture.claim(second).await, Some(task));
}
