//! The door itself: pops that wait, are woken, and are given up.

use std::{collections::BTreeSet, time::Duration};

use uuid::Uuid;
use wakeline_wake::Cause;

use crate::{
    calls::{Request, complete, from, names, part, push},
    test_door::{ANSWERS, TestDoor, answer, delivered, taken},
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
        let claimed = delivered(claim);
        complete(&*store, &claimed, names(&claimed)[0]).await;
    }
}

pub(crate) async fn each_pushed_partition_answers_a_pop(store: TestStore) {
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
    push(&*store, "q", "p", &["a"]).await;
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

pub(crate) async fn the_end_of_a_lease_wakes_a_pop_that_came_after_the_claim(store: TestStore) {
    for (queue, request) in [("q", from("q")), ("r", from("r").partition("p"))] {
        let door = TestDoor::open(&store).await;
        push(&*store, queue, "p", &["a"]).await;
        store.set_lease(queue, SHORT).await;
        taken(door.pop(request.clone())).await;
        let pops = door.pops();
        let (claim, woken_by) = answer(door.pop(request)).await;
        assert_eq!(names(claim.claim()), ["a"]);
        assert_eq!(woken_by, Some(Cause::Timer));
        // The pop checks, waits until the lease ends, and checks again. A timer may be early once.
        assert!(door.pops() - pops <= 3, "{} checks", door.pops() - pops);
    }
}

pub(crate) async fn the_end_of_a_lease_wakes_a_pop_that_waited_before_the_claim(store: TestStore) {
    let door = TestDoor::open(&store).await;
    // The group has caught up with the queue.
    push(&*store, "q", "p", &["first"]).await;
    from("q").auto_ack().claim(&*store).await;
    store.set_lease("q", SHORT).await;
    let first = door.parked(from("q")).await;
    let second = door.parked(from("q")).await;
    let third = door.parked(from("q").partition("p")).await;
    door.push(&["p"], "a").await;
    for pop in [first, second, third] {
        assert_eq!(names(&taken(pop).await), ["a"]);
    }
}

pub(crate) async fn a_held_pop_without_a_wake_asks_the_store_once(store: TestStore) {
    let door = TestDoor::open(&store).await;
    push(&*store, "q", "p", &["a"]).await;
    from("q").auto_ack().claim(&*store).await;
    let pop = door.queue.pop(from("q").0, Duration::from_millis(200));
    assert!(pop.await.unwrap().value.is_none());
    assert_eq!(door.pops(), 1);
}
