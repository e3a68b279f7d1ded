use uuid::Uuid;
use wakeline_jobs::{task::Status, topic::Wait};

use crate::fixture::{Fixture, named};

pub(crate) async fn the_waiters_that_can_be_answered_are_found(fixture: Fixture) {
    let worker = fixture.worker().await;
    let (idle, busy) = (
        fixture.job("r:modifiers:idle", worker).await.id,
        fixture.job("r:modifiers:busy", worker).await.id,
    );
    let done = fixture.submit("r:modifiers:idle").await.id;
    assert_eq!(fixture.complete(worker).await, done);
    let claimed = fixture.submit("r:modifiers:idle").await.id;
    assert_eq!(fixture.claim(worker).await, Some(claimed));
    let pending = fixture.submit("r:modifiers:busy").await.id;
    let (cancelled, unknown) = (fixture.submit("r:modifiers:busy").await.id, Uuid::new_v4());
    fixture.set(cancelled, Status::Cancelled).await;
    let (waiting, bored) = (fixture.worker().await, fixture.worker().await);
    fixture.job("r:modifiers:busy", waiting).await;
    fixture.job("r:modifiers:idle", bored).await;
    let waits = vec![
        // A worker with a pending task, one without, and a removed one.
        Wait::Worker(waiting),
        Wait::Worker(bored),
        Wait::Worker(unknown),
        Wait::Claim(idle),
        Wait::Claim(busy),
        Wait::Claim(unknown),
        Wait::Task(done),
        Wait::Task(claimed),
        Wait::Task(pending),
        Wait::Task(cancelled),
        // Deleted meanwhile: a caller that waits for it is answered.
        Wait::Task(unknown),
        Wait::Provider(named("r:fs:a")),
    ];
    let ready = fixture.store.ready(waits).await.unwrap();
    let expected = [
        Wait::Worker(waiting),
        Wait::Worker(unknown),
        Wait::Claim(busy),
        Wait::Task(done),
        Wait::Task(cancelled),
        Wait::Task(unknown),
    ];
    assert_eq!(ready.len(), expected.len(), "{ready:?}");
    assert!(
        expected.iter().all(|wait| ready.contains(wait)),
        "{ready:?}"
    );
    assert_eq!(fixture.store.ready(Vec::new()).await.unwrap(), []);
}
