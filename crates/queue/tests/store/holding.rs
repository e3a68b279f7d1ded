//! The door itself: pops that wait, are woken, and are given up.

use std::{collections::BTreeSet, time::Duration};

use uuid::Uuid;
use wakeline_queue::ack::AckStatus;
use wakeline_wake::Cause;
use wakeline_web::DeliveryGuard;

use crate::{
    calls::{Request, from, names, part, push, say},
    lost_wakes::acknowledge,
    test_door::{ANSWERS, TestDoor, answer, taken},
    test_store::TestStore,
};

/// A real lease that a test waits for.
const SHORT: Duration = Duration::from_millis(250);

pub(crate) async fn a_push_answers_a_waiting_pop(store: TestStore) {
    let door = TestDoor::open(&store).await;
    for request in [from("q"), from("q").partition("p"), from("q").auto_ack()] {
        let pop = door.parked(request).await;
        door.push(&["p"], &Uuid::new_v4().to_string()).await;
        let (claim, woken_by) = answer(pop).await;
        assert_eq!(woken_by, Some(Cause::Notify));
        let claimed = claim.claim().clone();
        claim.delivered();
        let ack = say(&claimed, names(&claimed)[0], AckStatus::Completed);
        acknowledge(&door.queue, ack).await;
    }
}

pub(crate) async fn each_partition_that_is_pushed_answers_a_waiter(store: TestStore) {
    let door = TestDoor::open(&store).await;
    let partitions = ["p0", "p1", "p2", "p3", "p4"];
    let mut pops = Vec::new();
    for _ in partitions {
        pops.push(door.parked(from("q")).await);
    }
    let another = door.parked(from("q")).await;
    door.push(&partitions, "a").await;
    let mut served = BTreeSet::new();
    for pop in pops {
        served.insert(part(&taken(pop).await).partition.clone());
    }
    assert_eq!(served, partitions.map(str::to_owned).into());
    assert!(!another.is_finished());
    another.abort();
}

async fn hang_up_during_the_claim(store: TestStore, request: Request) {
    let door = TestDoor::open(&store).await;
    push(&*door.store.inner, "q", "p", &["a"]).await;
    let kept_back = door.store.pops.answers.acquire_many(ANSWERS).await.unwrap();
    let pop = door.pop(request.clone());
    door.until_pops(1).await;
    pop.abort();
    assert!(pop.await.unwrap_err().is_cancelled());
    assert_eq!(door.engine.held(), 0, "it leaves at once");
    drop(kept_back);
    let claimed = taken(door.pop(request)).await;
    assert_eq!(names(&claimed), ["a"]);
}

pub(crate) async fn a_pop_that_hangs_up_during_its_claim_releases_it(store: TestStore) {
    hang_up_during_the_claim(store, from("q")).await;
}

pub(crate) async fn an_auto_ack_that_hangs_up_during_its_claim_releases_it(store: TestStore) {
    hang_up_during_the_claim(store, from("q").auto_ack()).await;
}

async fn drop_the_claim(store: TestStore, request: Request) {
    let door = TestDoor::open(&store).await;
    let first = door.parked(request.clone()).await;
    let second = door.parked(request).await;
    door.push(&["p"], "a").await;
    let (claim, _) = answer(first).await;
    assert_eq!(names(claim.claim()), ["a"]);
    drop(claim);
    assert_eq!(names(&taken(second).await), ["a"]);
}

pub(crate) async fn a_claim_that_is_dropped_is_released_and_wakes(store: TestStore) {
    drop_the_claim(store, from("q")).await;
}

pub(crate) async fn an_auto_ack_that_is_dropped_is_released_and_wakes(store: TestStore) {
    drop_the_claim(store, from("q").auto_ack()).await;
}

/// The group has caught up with the queue, and its leases are short.
async fn with_short_leases(store: &TestStore, door: &TestDoor) {
    push(&*door.store.inner, "q", "p", &["first"]).await;
    from("q").auto_ack().claim(&*door.store.inner).await;
    store.set_lease("q", SHORT).await;
}

pub(crate) async fn the_end_of_a_lease_wakes_who_came_after_it(store: TestStore) {
    for is_one in [false, true] {
        let door = TestDoor::open(&store).await;
        let queue = Uuid::new_v4().to_string();
        push(&*door.store.inner, &queue, "p", &["a"]).await;
        store.set_lease(&queue, SHORT).await;
        let mut request = from(&queue);
        if is_one {
            request = request.partition("p");
        }
        taken(door.pop(request.clone())).await;
        let pops = door.pops();
        let (claim, woken_by) = answer(door.pop(request)).await;
        assert_eq!(names(claim.claim()), ["a"]);
        assert_eq!(woken_by, Some(Cause::Timer));
        // Looked, slept until the lease ended, looked again. A timer may be early once.
        assert!(door.pops() - pops <= 3, "{} looks", door.pops() - pops);
    }
}

pub(crate) async fn the_end_of_a_lease_wakes_who_waited_before_it(store: TestStore) {
    let door = TestDoor::open(&store).await;
    with_short_leases(&store, &door).await;
    let first = door.parked(from("q")).await;
    let second = door.parked(from("q")).await;
    let third = door.parked(from("q").partition("p")).await;
    door.push(&["p"], "a").await;
    assert_eq!(names(&taken(first).await), ["a"]);
    assert_eq!(names(&taken(second).await), ["a"]);
    assert_eq!(names(&taken(third).await), ["a"]);
}

pub(crate) async fn a_wait_without_news_asks_the_store_once(store: TestStore) {
    let door = TestDoor::open(&store).await;
    push(&*door.store.inner, "q", "p", &["a"]).await;
    from("q").auto_ack().claim(&*door.store.inner).await;
    let pop = door.queue.pop(from("q").0, Duration::from_millis(200));
    assert!(pop.await.unwrap().value.is_none());
    assert_eq!(door.pops(), 1);
}
