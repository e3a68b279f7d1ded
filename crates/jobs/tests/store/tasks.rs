use uuid::Uuid;
use wakeline_jobs::task::{Claimed, NewTask, Status, Submitted, Task, Update, Updated};
use wakeline_testkit::CommitAlone;

use crate::{
    database::Database,
    ground::{Ground, new_job, new_task},
};

const JOB: &str = "r:modifiers:Rotate";

pub(crate) async fn a_task_is_as_it_was_submitted(database: Database) {
    let ground = Ground::new(database).await;
    let job = ground.job(JOB, ground.worker().await).await;
    let new = new_task(JOB, "elsewhere", ground.ben);
    let Submitted::Done(task) = ground
        .store
        .submit(new.clone())
        .commit_alone()
        .await
        .unwrap()
    else {
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
    assert_eq!(ground.task(new.id).await, expected);
    assert_eq!(ground.store.task(Uuid::new_v4()).await.unwrap(), None);
}

pub(crate) async fn without_a_job_there_is_no_task(database: Database) {
    let ground = Ground::new(database).await;
    let new = new_task(JOB, "r", ground.ben);
    let refused = ground
        .store
        .submit(new.clone())
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(refused, Submitted::NoJob);
    assert_eq!(ground.store.task(new.id).await.unwrap(), None);
}

pub(crate) async fn a_task_may_need_somebody_who_does_it(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    let needing = || NewTask {
        needs_worker: true,
        ..new_task(JOB, "r", ground.ben)
    };
    let taken = ground.store.submit(needing()).commit_alone().await.unwrap();
    assert!(matches!(taken, Submitted::Done(_)), "{taken:?}");
    // The job stays: somebody waits for it.
    ground.remove(worker).await;
    let refused = ground.store.submit(needing()).commit_alone().await.unwrap();
    assert_eq!(refused, Submitted::NoWorkers);
    ground.submit(JOB).await;
}

pub(crate) async fn only_the_owner_claims_for_a_worker(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    let (b, a) = (
        ground.job("r:modifiers:b", worker).await,
        ground.job("r:modifiers:a", worker).await,
    );
    ground.job("r:modifiers:other", ground.worker().await).await;
    let mut jobs = vec![a.id, b.id];
    jobs.sort_unstable();
    let claim = |worker, user| ground.store.claim(worker, user);
    let nothing = claim(worker, ground.anna).commit_alone().await.unwrap();
    assert_eq!(nothing, Claimed::Nothing { jobs });
    let foreign = claim(worker, ground.ben).commit_alone().await.unwrap();
    assert_eq!(foreign, Claimed::Foreign);
    let unknown = claim(Uuid::new_v4(), ground.anna)
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(unknown, Claimed::NoWorker);
    let idle = ground.worker().await;
    let without = claim(idle, ground.anna).commit_alone().await.unwrap();
    assert_eq!(without, Claimed::Nothing { jobs: Vec::new() });
    let task = ground.submit("r:modifiers:a").await;
    assert_eq!(
        claim(worker, ground.ben).commit_alone().await.unwrap(),
        Claimed::Foreign
    );
    let claimed = claim(worker, ground.anna).commit_alone().await.unwrap();
    let expected = Task {
        status: Status::Claimed,
        worker: Some(worker),
        queue_position: None,
        ..task
    };
    assert_eq!(claimed, Claimed::Task(expected.clone()));
    assert_eq!(ground.task(expected.id).await, expected);
}

pub(crate) async fn who_has_waited_longest_comes_first(database: Database) {
    let ground = Ground::new(database).await;
    let (both, one) = (ground.worker().await, ground.worker().await);
    ground.job("r:modifiers:a", both).await;
    ground.job("s:modifiers:b", both).await;
    ground.job("s:modifiers:b", one).await;
    let mut tasks = Vec::new();
    for (room, job) in [
        ("r", "r:modifiers:a"),
        ("r", "s:modifiers:b"),
        ("s", "s:modifiers:b"),
        ("t", "r:modifiers:a"),
        ("r", "s:modifiers:b"),
        ("s", "r:modifiers:a"),
    ] {
        tasks.push(ground.submit_to(room, job).await.id);
    }
    // One of them does only the second job.
    assert_eq!(ground.claim(one).await, Some(tasks[1]));
    for task in [0, 2, 3, 4, 5] {
        assert_eq!(ground.claim(both).await, Some(tasks[task]), "{task}");
    }
    assert_eq!(ground.claim(both).await, None);
    assert_eq!(ground.claim(one).await, None);
}

/// Brings a task into a state by the usual way.
async fn put(ground: &Ground, worker: Uuid, status: Status) -> Uuid {
    let task = ground.submit(JOB).await.id;
    if status == Status::Pending {
        return task;
    }
    assert_eq!(ground.claim(worker).await, Some(task));
    let way: &[Status] = match status {
        Status::Completed => &[Status::Running, Status::Completed],
        Status::Claimed => &[],
        _ => &[status],
    };
    for next in way {
        let updated = ground.set(task, *next).await;
        assert!(matches!(updated, Updated::Done { .. }), "{updated:?}");
    }
    task
}

pub(crate) async fn a_claim_goes_back_to_its_place(database: Database) {
    let ground = Ground::new(database).await;
    let (worker, other) = (ground.worker().await, ground.worker().await);
    ground.job(JOB, worker).await;
    let (first, second) = (ground.submit(JOB).await, ground.submit(JOB).await);
    let unclaim = async |worker| {
        ground
            .store
            .unclaim(first.id, worker)
            .commit_alone()
            .await
            .unwrap()
    };
    assert_eq!(unclaim(worker).await, None, "nobody has it");
    assert_eq!(ground.claim(worker).await, Some(first.id));
    assert_eq!(unclaim(other).await, None, "another has it");
    assert_eq!(unclaim(worker).await, Some(first.clone()));
    assert_eq!(unclaim(worker).await, None, "it is back already");
    assert_eq!(ground.task(second.id).await.queue_position, Some(2));
    assert_eq!(ground.claim(worker).await, Some(first.id));
    ground.set(first.id, Status::Running).await;
    assert_eq!(unclaim(worker).await, None, "it has begun");
    assert_eq!(ground.task(first.id).await.worker, Some(worker));
    ground.set(first.id, Status::Completed).await;
    assert_eq!(unclaim(worker).await, None, "it is over");
}

pub(crate) async fn a_claim_that_went_back_has_cost_no_retry(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job_with(JOB, worker, 1).await;
    let task = ground.submit(JOB).await.id;
    ground.claim(worker).await;
    ground
        .store
        .unclaim(task, worker)
        .commit_alone()
        .await
        .unwrap();
    ground.claim(worker).await;
    ground.remove(worker).await;
    assert_eq!(ground.task(task).await.status, Status::Pending);
}

pub(crate) async fn every_state_leads_where_it_may(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    for from in Status::ALL {
        for to in Status::ALL {
            let task = put(&ground, worker, from).await;
            let before = ground.task(task).await;
            let updated = ground.set(task, to).await;
            let after = ground.task(task).await;
            if from.leads_to(to) {
                let Updated::Done { task, orphan } = updated else {
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
                assert_eq!(updated, Updated::Stays(from), "{from} → {to}");
                assert_eq!(after, before);
            }
            // The next one finds an empty line.
            ground.set(task, Status::Cancelled).await;
        }
    }
    let unknown = ground.set(Uuid::new_v4(), Status::Cancelled).await;
    assert_eq!(unknown, Updated::NotFound);
}

pub(crate) async fn only_its_workers_owner_updates_it(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    let task = ground.submit(JOB).await.id;
    let update = |user, status| ground.update(task, user, false, status);
    let unclaimed = update(ground.anna, Status::Claimed).await;
    assert_eq!(unclaimed, Updated::Unclaimed);
    ground.claim(worker).await;
    // Who has submitted it has no say any more; asked before whether the state leads there.
    for status in [Status::Cancelled, Status::Completed, Status::Pending] {
        assert_eq!(update(ground.ben, status).await, Updated::Foreign);
    }
    let done = update(ground.anna, Status::Running).await;
    assert!(matches!(done, Updated::Done { .. }), "{done:?}");
    let done = ground.update(task, ground.ben, true, Status::Failed).await;
    assert!(matches!(done, Updated::Done { .. }), "{done:?}");
}

/// One that was lost and does not know it shares its user with the one that has the task now.
pub(crate) async fn a_worker_that_says_which_it_is_updates_only_its_own(database: Database) {
    let ground = Ground::new(database).await;
    let (lost, worker) = (ground.worker().await, ground.worker().await);
    ground.job_with(JOB, lost, 1).await;
    ground.job_with(JOB, worker, 1).await;
    let task = ground.submit(JOB).await.id;
    let update = async |worker, status| {
        let update = Update {
            task,
            user: ground.anna,
            is_superuser: false,
            status,
            error: None,
            worker: Some(worker),
        };
        ground.store.update(update).commit_alone().await.unwrap()
    };
    let is_done = |updated: &Updated| matches!(updated, Updated::Done { .. });
    assert_eq!(ground.claim(lost).await, Some(task));
    assert!(is_done(&update(lost, Status::Running).await));
    ground.remove(lost).await;
    let other = update(lost, Status::Completed).await;
    assert_eq!(other, Updated::OtherWorkers, "nobody has it");
    assert_eq!(ground.claim(worker).await, Some(task));
    assert!(is_done(&update(worker, Status::Running).await));
    let other = update(lost, Status::Completed).await;
    assert_eq!(other, Updated::OtherWorkers);
    assert_eq!(ground.task(task).await.status, Status::Running);
    assert!(is_done(&update(worker, Status::Completed).await));
}

pub(crate) async fn who_has_submitted_it_takes_it_back_while_it_is_pending(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    let task = ground.submit(JOB).await.id;
    let update = |user, status| ground.update(task, user, false, status);
    let foreign = update(ground.anna, Status::Cancelled).await;
    assert_eq!(foreign, Updated::Unclaimed);
    // Nothing else than taking it back.
    assert_eq!(
        update(ground.ben, Status::Claimed).await,
        Updated::Unclaimed
    );
    let Updated::Done { task: seen, .. } = update(ground.ben, Status::Cancelled).await else {
        panic!("it is his");
    };
    assert_eq!(
        (seen.status, seen.queue_position),
        (Status::Cancelled, None)
    );
    assert_eq!(
        update(ground.ben, Status::Cancelled).await,
        Updated::Unclaimed
    );
    assert_eq!(ground.claim(worker).await, None);
}

pub(crate) async fn its_end_says_why(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    let task = ground.submit(JOB).await.id;
    let say = |status, error: Option<&str>| {
        let update = Update {
            task,
            user: ground.anna,
            is_superuser: false,
            status,
            error: error.map(str::to_owned),
            worker: None,
        };
        ground.store.update(update)
    };
    ground.claim(worker).await;
    say(Status::Running, Some("too early"))
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(ground.task(task).await.error, None);
    say(Status::Failed, Some("it broke"))
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(ground.task(task).await.error.as_deref(), Some("it broke"));
    let other = ground.submit(JOB).await.id;
    ground.claim(worker).await;
    let update = Update {
        task: other,
        user: ground.anna,
        is_superuser: false,
        status: Status::Failed,
        error: Some(String::new()),
        worker: None,
    };
    ground.store.update(update).commit_alone().await.unwrap();
    assert_eq!(
        ground.task(other).await.error,
        None,
        "no words are no reason"
    );
}

pub(crate) async fn a_superuser_claims_for_nobody(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    ground.job(JOB, worker).await;
    let task = ground.submit(JOB).await.id;
    let done = ground.set(task, Status::Claimed).await;
    assert!(matches!(done, Updated::Done { .. }), "{done:?}");
    assert_eq!(ground.task(task).await.worker, None);
    assert_eq!(ground.claim(worker).await, None);
    let refused = ground
        .update(task, ground.anna, false, Status::Running)
        .await;
    assert_eq!(refused, Updated::Unclaimed);
}

pub(crate) async fn a_job_registered_later_is_claimed_from(database: Database) {
    let ground = Ground::new(database).await;
    let (first, second) = (ground.worker().await, ground.worker().await);
    ground.job(JOB, first).await;
    let task = ground.submit(JOB).await.id;
    assert_eq!(ground.claim(second).await, None);
    let new = new_job(JOB, ground.anna, Some(second));
    ground.store.register_job(new).commit_alone().await.unwrap();
    assert_eq!(ground.claim(second).await, Some(task));
}
