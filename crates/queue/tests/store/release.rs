use wakeline_queue::ack::AckOutcome;

use crate::{
    calls::{GOES_ON, LEASE, RELEASED, complete, from, names, part, push, release_claim},
    test_store::TestStore,
};

pub(crate) async fn a_released_claim_can_be_claimed_again_at_once(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    assert!(release_claim(&*store, &claimed).await);
    let again = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&again), ["a", "b"]);
    assert_eq!(
        complete(&*store, &claimed, "a").await,
        AckOutcome::LeaseLost
    );
    assert_eq!(complete(&*store, &again, "a").await, GOES_ON);
}

pub(crate) async fn messages_of_a_released_auto_ack_are_redelivered(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let auto = from("q").auto_ack().batch(2);
    let claimed = auto.claim(&*store).await;
    assert!(release_claim(&*store, &claimed).await);
    assert_eq!(names(&auto.claim(&*store).await), ["a", "b"]);
    // Also if it had the last message.
    let last = auto.claim(&*store).await;
    assert_eq!((names(&last), part(&last).remaining), (vec!["c"], 0));
    assert!(release_claim(&*store, &last).await);
    assert_eq!(names(&auto.claim(&*store).await), ["c"]);
}

pub(crate) async fn the_lease_of_another_consumer_is_not_released(store: TestStore) {
    let [one, two] = store.nodes().await;
    push(&*one, "q", "p", &["a"]).await;
    let lost = from("q").claim(&*one).await;
    store.pass(LEASE).await;
    let held = from("q").claim(&*two).await;
    assert!(!release_claim(&*one, &lost).await);
    assert!(from("q").nothing(&*one).await.is_some());
    complete(&*two, &held, "a").await;
    assert!(!release_claim(&*one, &lost).await);
    assert!(!release_claim(&*two, &held).await);
    assert_eq!(from("q").nothing(&*one).await, None);
}

pub(crate) async fn a_partly_acknowledged_claim_is_not_released(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    complete(&*store, &claimed, "a").await;
    assert!(!release_claim(&*store, &claimed).await);
    assert!(from("q").nothing(&*store).await.is_some(), "still leased");
}

pub(crate) async fn an_auto_ack_is_not_released_after_a_later_claim(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let auto = from("q").auto_ack();
    let first = auto.claim(&*store).await;
    let second = auto.claim(&*store).await;
    assert!(!release_claim(&*store, &first).await);
    assert!(release_claim(&*store, &second).await);
    let leased = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&leased), ["b", "c"]);
    // Now the position is where the first claim ended, but another consumer works from there.
    assert!(!release_claim(&*store, &first).await);
    assert_eq!(complete(&*store, &leased, "c").await, RELEASED);
}
