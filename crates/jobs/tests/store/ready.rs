use uuid::Uuid;
use wakeline_jobs::{task::Status, topic::Wait};

use crate::{
    database::Database,
    ground::{Ground, named},
};

pub(crate) async fn who_can_be_answered(database: Database) {
    let ground = Ground::new(database).await;
    let worker = ground.worker().await;
    let (idle, busy) = (
        ground.job("r:modifiers:idle", worker).await.id,
        ground.job("r:modifiers:busy", worker).await.id,
    );
    let done = ground.submit("r:modifiers:idle").await.id;
    assert_eq!(ground.complete(worker).await, done);
    let claimed = ground.submit("r:modifiers:idle").await.id;
    assert_eq!(ground.claim(worker).await, Some(claimed));
    let pending = ground.submit("r:modifiers:busy").await.id;
    let (cancelled, unknown) = (ground.submit("r:modifiers:busy").await.id, Uuid::new_v4());
    ground.set(cancelled, Status::Cancelled).await;
    let (waiting, bored) = (ground.worker().await, ground.worker().await);
    ground.job("r:modifiers:busy", waiting).await;
    ground.job("r:modifiers:idle", bored).await;
    let waits = vec![
        // Something to do for it, nothing to do, and gone.
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
        // Forgotten meanwhile: whoever waits for it is to be told.
        Wait::Task(unknown),
        Wait::Provider(named("r:fs:a")),
    ];
    let ready = ground.store.ready(waits).await.unwrap();
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
    assert_eq!(ground.store.ready(Vec::new()).await.unwrap(), []);
}
