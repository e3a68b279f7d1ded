use std::time::Duration;

use uuid::Uuid;
use wakeline_jobs::{
    page::ListPage,
    worker::{OwnerOutcome, Worker, WorkerSummary},
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, SECOND, page};

fn ids(workers: &ListPage<WorkerSummary>) -> Vec<Uuid> {
    let workers = workers.items.iter();
    workers.map(|summary| summary.worker.id).collect()
}

pub(crate) async fn only_the_owner_of_a_worker_sends_its_heartbeats(fixture: Fixture) {
    let worker = fixture.store.create_worker(fixture.anna).done().await;
    fixture.database.pass(Duration::from_secs(10)).await;
    let beat = |user| fixture.store.heartbeat(worker.id, user);
    let OwnerOutcome::Done(Worker { id, last_heartbeat }) = beat(fixture.anna).done().await else {
        panic!("it is hers");
    };
    assert_eq!(id, worker.id);
    let listed = fixture.store.workers(ALL).await.unwrap();
    assert_eq!(listed.items[0].worker.last_heartbeat, last_heartbeat);
    fixture.database.pass(Duration::from_secs(10)).await;
    assert_eq!(beat(fixture.ben).done().await, OwnerOutcome::NotOwner);
    let unknown = fixture
        .store
        .heartbeat(Uuid::new_v4(), fixture.anna)
        .commit_alone()
        .await;
    assert_eq!(unknown.unwrap(), OwnerOutcome::NotFound);
    // The worker's last heartbeat is ten seconds old, although another user has tried to send one.
    let swept = fixture.sweep(crate::fixture::TERMS).await;
    let next = swept.next.unwrap();
    assert!(next <= 50 * SECOND, "{next}");
    assert!(next > 40 * SECOND, "{next}");
}

pub(crate) async fn one_write_stores_the_heartbeats_of_several_workers(fixture: Fixture) {
    let (one, other) = (fixture.worker().await, fixture.worker().await);
    let (silent, removed) = (fixture.worker().await, fixture.worker().await);
    fixture.remove(removed).await;
    fixture.database.pass(Duration::from_secs(10)).await;
    for workers in [vec![one, other, removed], Vec::new()] {
        fixture.store.heartbeats(workers).done().await;
    }
    let listed = fixture.store.workers(ALL).await.unwrap();
    // A worker that was removed meanwhile is not revived.
    assert_eq!(ids(&listed), [silent, other, one]);
    let heartbeats = listed.items.iter();
    let heartbeats: Vec<i64> = heartbeats
        .map(|summary| summary.worker.last_heartbeat)
        .collect();
    assert!(
        heartbeats[1] - heartbeats[0] >= 9 * SECOND,
        "{heartbeats:?}"
    );
    assert!(
        heartbeats[2] - heartbeats[0] >= 9 * SECOND,
        "{heartbeats:?}"
    );
    // Only the worker without a heartbeat is lost.
    fixture.database.pass(Duration::from_secs(55)).await;
    let swept = fixture.sweep(crate::fixture::TERMS).await;
    assert_eq!(swept.loss.workers, [silent]);
}

pub(crate) async fn the_owner_of_a_worker_is_found(fixture: Fixture) {
    let worker = fixture.worker().await;
    let owner = fixture.store.worker_owner(worker).await.unwrap();
    assert_eq!(owner, Some(fixture.anna));
    let nobody = fixture.store.worker_owner(Uuid::new_v4()).await.unwrap();
    assert_eq!(nobody, None);
}

pub(crate) async fn only_its_owner_or_the_server_removes_a_worker(fixture: Fixture) {
    let (one, other) = (fixture.worker().await, fixture.worker().await);
    let remove = |worker, user| fixture.store.remove_worker(worker, user);
    let foreign = remove(one, Some(fixture.ben)).done().await;
    assert_eq!(foreign, OwnerOutcome::NotOwner);
    assert!(matches!(
        remove(one, Some(fixture.anna)).done().await,
        OwnerOutcome::Done(_)
    ));
    let again = remove(one, Some(fixture.anna)).done().await;
    assert_eq!(again, OwnerOutcome::NotFound);
    assert!(matches!(
        remove(other, None).done().await,
        OwnerOutcome::Done(_)
    ));
    assert_eq!(fixture.store.workers(ALL).await.unwrap().total, 0);
}

pub(crate) async fn workers_are_listed_newest_first(fixture: Fixture) {
    let empty = fixture.store.workers(page(0, 0)).await.unwrap();
    assert_eq!((empty.items.len(), empty.total), (0, 0));
    let mut workers = Vec::new();
    for _ in 0..5 {
        workers.insert(0, fixture.worker().await);
    }
    fixture.job("r:modifiers:a", workers[1]).await;
    fixture.job("r:modifiers:b", workers[1]).await;
    let all = fixture.store.workers(ALL).await.unwrap();
    assert_eq!((ids(&all), all.total), (workers.clone(), 5));
    let counts: Vec<_> = all.items.iter().map(|summary| summary.job_count).collect();
    assert_eq!(counts, [0, 2, 0, 0, 0]);
    let part = fixture.store.workers(page(2, 1)).await.unwrap();
    assert_eq!((ids(&part), part.total), (workers[1..3].to_vec(), 5));
    let none = fixture.store.workers(page(0, 0)).await.unwrap();
    assert_eq!((none.items.len(), none.total), (0, 5));
    let past = fixture.store.workers(page(2, 9)).await.unwrap();
    assert_eq!((past.items.len(), past.total), (0, 5));
}

pub(crate) async fn a_room_lists_the_workers_of_its_jobs(fixture: Fixture) {
    let (here, everywhere, elsewhere) = (
        fixture.worker().await,
        fixture.worker().await,
        fixture.worker().await,
    );
    fixture.worker().await;
    for (name, worker) in [
        ("r:modifiers:a", here),
        ("r:modifiers:b", here),
        ("@global:modifiers:a", everywhere),
        ("other:modifiers:a", elsewhere),
    ] {
        fixture.job(name, worker).await;
    }
    let of = |scopes: &[&str], page| {
        let scopes = scopes.iter().map(ToString::to_string).collect();
        fixture.store.workers_of(scopes, page)
    };
    let seen = of(&["r", "@global"], ALL).await.unwrap();
    assert_eq!((ids(&seen), seen.total), (vec![everywhere, here], 2));
    assert_eq!(seen.items[1].job_count, 2);
    let part = of(&["r", "@global"], page(1, 1)).await.unwrap();
    assert_eq!((ids(&part), part.total), (vec![here], 2));
    let nobody = of(&["nowhere"], ALL).await.unwrap();
    assert_eq!((nobody.items.len(), nobody.total), (0, 0));
}
