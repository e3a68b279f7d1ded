use wakeline_queue::ack::{AckOutcome, AckStatus};

use crate::{
    calls::{GOES_ON, LEASE, ack, from, names, outcome, part, push, release_claim},
    test_store::TestStore,
};

pub(crate) async fn a_lease_that_is_released_is_free_at_once(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    assert!(release_claim(&*store, &claimed).await);
    let again = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&again), ["a", "b"]);
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        AckOutcome::LeaseLost
    );
    assert_eq!(
        outcome(&*store, &again, "a", AckStatus::Completed).await,
        GOES_ON
    );
}

pub(crate) async fn an_auto_ack_that_is_released_comes_again(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let auto = from("q").auto_ack().batch(2);
    let claimed = auto.claim(&*store).await;
    assert!(release_claim(&*store, &claimed).await);
    assert_eq!(names(&auto.claim(&*store).await), ["a", "b"]);
    // Also when it was the last there was.
    let last = auto.claim(&*store).await;
    assert_eq!((names(&last), part(&last).remaining), (vec!["c"], 0));
    assert!(release_claim(&*store, &last).await);
    assert_eq!(names(&auto.claim(&*store).await), ["c"]);
}

pub(crate) async fn a_lease_of_somebody_else_is_not_released(store: TestStore) {
    let [one, two] = store.nodes().await;
    push(&*one, "q", "p", &["a"]).await;
    let lost = from("q").claim(&*one).await;
    store.pass(LEASE).await;
    let held = from("q").claim(&*two).await;
    assert!(!release_claim(&*one, &lost).await);
    assert!(from("q").nothing(&*one).await.is_some());
    ack(&*two, &held, "a", AckStatus::Completed).await;
    assert!(!release_claim(&*one, &lost).await);
    assert!(!release_claim(&*two, &held).await);
    assert_eq!(from("q").nothing(&*one).await, None);
}

pub(crate) async fn what_was_acknowledged_in_part_is_not_released(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    ack(&*store, &claimed, "a", AckStatus::Completed).await;
    assert!(!release_claim(&*store, &claimed).await);
    assert!(from("q").nothing(&*store).await.is_some(), "still leased");
}

pub(crate) async fn an_auto_ack_is_not_released_behind_a_later_claim(store: TestStore) {
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
    assert_eq!(
        outcome(&*store, &leased, "c", AckStatus::Completed).await,
        AckOutcome::Done {
            lease_released: true,
            dead: false
        }
    );
}
