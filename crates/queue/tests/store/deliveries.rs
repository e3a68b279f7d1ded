//! How often a message was delivered to a group.

use std::time::Duration;

use wakeline_queue::{claim::Claim, queue_admin::Seek, store::Store};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{
        GOES_ON, LEASE, RELEASED, complete, fail, from, names, part, push, release_claim, retry,
        scope, without_lease,
    },
    http_calls::Routes,
    test_store::TestStore,
};

fn attempts(claimed: &Claim) -> Vec<(&str, usize)> {
    let part = part(claimed);
    let attempt = |position| part.deliveries.attempt(position);
    let attempts = part
        .messages
        .iter()
        .map(|message| attempt(message.position));
    names(claimed).into_iter().zip(attempts).collect()
}

async fn claim(store: &dyn Store, batch: u32) -> Claim {
    from("q").batch(batch).claim_soon(store).await
}

pub(crate) async fn each_redelivery_of_a_message_counts_up(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let first = claim(&*store, 2).await;
    assert_eq!(attempts(&first), [("a", 1), ("b", 1)]);
    assert_eq!(fail(&*store, &first, "a").await, RELEASED);
    let second = claim(&*store, 1).await;
    assert_eq!(attempts(&second), [("a", 2)]);
    // The lease ends without an acknowledgement.
    store.pass(LEASE).await;
    let third = claim(&*store, 3).await;
    assert_eq!(attempts(&third), [("a", 3), ("b", 2), ("c", 1)]);
    assert_eq!(complete(&*store, &third, "a").await, GOES_ON);
    assert_eq!(retry(&*store, &third, "b").await, RELEASED);
    assert_eq!(attempts(&claim(&*store, 3).await), [("b", 3), ("c", 2)]);
}

pub(crate) async fn messages_behind_a_completed_one_keep_their_count(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let lost = claim(&*store, 2).await;
    store.pass(LEASE).await;
    assert_eq!(complete(&*store, &without_lease(&lost), "a").await, GOES_ON);
    push(&*store, "q", "p", &["c"]).await;
    assert_eq!(attempts(&claim(&*store, 3).await), [("b", 2), ("c", 1)]);
}

pub(crate) async fn a_released_claim_is_no_delivery(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    for _ in 0..3 {
        let undelivered = claim(&*store, 1).await;
        assert_eq!(attempts(&undelivered), [("a", 1)]);
        assert!(release_claim(&*store, &undelivered).await);
    }
    let delivered = claim(&*store, 1).await;
    store.pass(LEASE).await;
    let undelivered = claim(&*store, 1).await;
    assert_eq!(attempts(&undelivered), [("a", 2)]);
    assert!(release_claim(&*store, &undelivered).await);
    assert_eq!(attempts(&claim(&*store, 1).await), [("a", 2)]);
    assert_eq!(attempts(&delivered), [("a", 1)]);
}

pub(crate) async fn groups_seeks_and_auto_acks_count_by_themselves(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = claim(&*store, 2).await;
    assert_eq!(retry(&*store, &claimed, "a").await, RELEASED);
    let other = from("q").group("other").batch(2).claim(&*store).await;
    assert_eq!(attempts(&other), [("a", 1), ("b", 1)]);
    let auto = from("q").auto_ack().claim(&*store).await;
    assert_eq!(attempts(&auto), [("a", 2)]);
    let seek = || store.seek(scope(Some("q"), None), Seek::At(0)).done();
    // What the group is to read again from a place of its choice is a first delivery.
    seek().await;
    assert_eq!(attempts(&claim(&*store, 2).await), [("a", 1), ("b", 1)]);
    seek().await;
    assert_eq!(attempts(&claim(&*store, 2).await), [("a", 1), ("b", 1)]);
}

pub(crate) async fn a_popped_message_shows_its_attempt(store: TestStore) {
    let routes = Routes::of(store.queue());
    push(&*store, "q", "p", &["a", "b"]).await;
    let path = "/api/v1/pop/queue/q?consumerGroup=g&leaseSeconds=1&batch=";
    let first = routes.get(&format!("{path}1")).await;
    assert_eq!(first["messages"][0]["deliveryAttempt"], 1);
    tokio::time::sleep(Duration::from_millis(1_010)).await;
    let second = routes.get(&format!("{path}2")).await;
    let attempts = [0, 1].map(|at| second["messages"][at]["deliveryAttempt"].clone());
    assert_eq!(attempts, [2, 1]);
}
