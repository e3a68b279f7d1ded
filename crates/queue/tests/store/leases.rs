use std::time::Duration;

use http::StatusCode;
use uuid::Uuid;
use wakeline_queue::{
    Limits,
    ack::{
        AckOutcome,
        AckStatus::{Completed, DeadLetter, Failed, Retry},
    },
    claim::Claim,
};

use crate::{
    calls::{
        GOES_ON, LEASE, RELEASED, assert_about, complete, from, names, outcome, part, push,
        release_claim,
    },
    http_calls::Routes,
    test_store::TestStore,
};

pub(crate) async fn a_leased_partition_is_not_claimed_before_its_lease_ends(store: TestStore) {
    push(&*store, "q", "p1", &["a", "b"]).await;
    from("q").claim(&*store).await;
    assert_about(from("q").nothing(&*store).await, LEASE);
    assert_about(from("q").partition("p1").nothing(&*store).await, LEASE);
    assert_about(from("q").auto_ack().nothing(&*store).await, LEASE);
    push(&*store, "q", "p2", &["c"]).await;
    store.pass(LEASE / 2).await;
    assert_eq!(names(&from("q").claim(&*store).await), ["c"]);
    // The first of the two leases to end.
    assert_about(from("q").nothing(&*store).await, LEASE / 2);
    assert_about(from("q").partition("p2").nothing(&*store).await, LEASE);
}

pub(crate) async fn the_lease_time_of_the_queue_applies(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let time = LEASE * 3;
    store.set_lease("q", time).await;
    let claimed = from("q").claim(&*store).await;
    assert_about(from("q").nothing(&*store).await, time);
    store.pass(LEASE * 2).await;
    assert_eq!(complete(&*store, &claimed, "a").await, RELEASED);
}

pub(crate) async fn messages_of_an_expired_lease_are_redelivered(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let first = from("q").batch(2).claim(&*store).await;
    store.pass(LEASE).await;
    let second = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&first), names(&second));
    assert_ne!(first.lease, second.lease);
    // An acknowledged message is not redelivered.
    assert_eq!(complete(&*store, &second, "a").await, GOES_ON);
    store.pass(LEASE).await;
    assert_eq!(names(&from("q").batch(2).claim(&*store).await), ["b", "c"]);
}

/// Longer than a slow machine takes from a claim to the next.
const SHORT_LEASE: Duration = Duration::from_secs(1);

/// The same with a real, short lease.
pub(crate) async fn a_lease_ends_when_its_time_is_over(store: TestStore) {
    store.let_the_clock_run();
    push(&*store, "q", "p", &["a"]).await;
    store.set_lease("q", SHORT_LEASE).await;
    let first = from("q").claim(&*store).await;
    let recheck_after = from("q").nothing(&*store).await.unwrap();
    assert!(recheck_after <= SHORT_LEASE, "{recheck_after:?}");
    tokio::time::sleep(recheck_after + Duration::from_millis(2)).await;
    let second = from("q").claim(&*store).await;
    assert_eq!(part(&first).messages, part(&second).messages);
    let late = complete(&*store, &first, "a").await;
    assert_eq!(late, AckOutcome::LeaseLost);
}

pub(crate) async fn a_consumer_with_a_lost_lease_changes_nothing(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let lost = from("q").batch(2).claim(&*store).await;
    let statuses = [Completed, Failed, Retry, DeadLetter];
    store.pass(LEASE).await;
    // Expired, and no other consumer has a lease yet.
    for status in statuses {
        let refused = outcome(&*store, &lost, "a", status).await;
        assert_eq!(refused, AckOutcome::LeaseLost);
    }
    let held = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&held), ["a", "b"]);
    let foreign = Claim {
        lease: Some(Uuid::now_v7()),
        ..lost.clone()
    };
    let nil = Claim {
        lease: Some(Uuid::nil()),
        ..lost.clone()
    };
    for loser in [&lost, &foreign, &nil] {
        for status in statuses {
            for transaction in ["a", "b", "unknown"] {
                let refused = outcome(&*store, loser, transaction, status).await;
                assert_eq!(refused, AckOutcome::LeaseLost);
            }
        }
        assert!(!release_claim(&*store, loser).await);
    }
    assert_eq!(store.database.count("queue_message_flag").await, 0);
    assert_eq!(store.database.count("queue_dead_letter").await, 0);
    assert_eq!(complete(&*store, &held, "a").await, GOES_ON);
    assert_eq!(complete(&*store, &held, "b").await, RELEASED);
    // What the holder of the lease has completed is done, whoever asks.
    for loser in [&lost, &foreign, &nil, &held] {
        assert_eq!(complete(&*store, loser, "b").await, AckOutcome::AlreadyDone);
        assert_eq!(
            outcome(&*store, loser, "b", Failed).await,
            AckOutcome::Passed
        );
    }
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn auto_ack_advances_the_cursor_without_a_lease(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    let auto = || from("q").auto_ack();
    let one = auto().claim(&*store).await;
    assert_eq!((names(&one), part(&one).remaining), (vec!["a"], 3));
    assert_eq!(one.lease, None);
    let two = auto().batch(2).claim(&*store).await;
    assert_eq!((names(&two), part(&two).remaining), (vec!["b", "c"], 1));
    let rest = auto().batch(9).claim(&*store).await;
    assert_eq!((names(&rest), part(&rest).remaining), (vec!["d"], 0));
    assert_eq!(auto().nothing(&*store).await, None);
    push(&*store, "q", "p", &["e"]).await;
    assert_eq!(names(&auto().claim(&*store).await), ["e"]);
    // Under a lease nothing remains for others.
    push(&*store, "q", "p", &["f", "g"]).await;
    assert_eq!(part(&from("q").claim(&*store).await).remaining, 0);
}

pub(crate) async fn auto_ack_after_an_expired_lease_fences_the_old_holder(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let lost = from("q").batch(2).claim(&*store).await;
    store.pass(LEASE).await;
    assert_eq!(names(&from("q").auto_ack().claim(&*store).await), ["a"]);
    assert_eq!(complete(&*store, &lost, "b").await, AckOutcome::LeaseLost);
    assert!(!release_claim(&*store, &lost).await);
    assert_eq!(names(&from("q").claim(&*store).await), ["b"]);
}

pub(crate) async fn a_pop_names_the_time_of_its_lease(store: TestStore) {
    push(&*store, "q", "p1", &["a"]).await;
    push(&*store, "q", "p2", &["b"]).await;
    store.set_lease("q", LEASE).await;
    let long = from("q").partition("p1").lease_time(LEASE * 3);
    let long = long.claim(&*store).await;
    let short = from("q").partition("p2").lease_time(LEASE / 2);
    short.claim(&*store).await;
    assert_about(from("q").nothing(&*store).await, LEASE / 2);
    store.pass(LEASE / 2).await;
    assert_eq!(names(&from("q").claim(&*store).await), ["b"]);
    store.pass(LEASE).await;
    assert_eq!(complete(&*store, &long, "a").await, RELEASED);
}

pub(crate) async fn the_lease_time_of_a_pop_is_limited(store: TestStore) {
    let routes = Routes::of(store.queue_with(Limits {
        max_lease: Duration::from_secs(9),
        ..Limits::default()
    }));
    push(&*store, "q", "p", &["a"]).await;
    for query in [
        "leaseSeconds=10",
        "leaseSeconds=0",
        "leaseSeconds=5&autoAck=true",
    ] {
        let path = format!("/api/v1/pop/queue/q?consumerGroup=g&{query}");
        let (status, refused) = routes.ask_get(&path).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {refused}");
        assert_eq!(refused["field"], "leaseSeconds");
        assert_eq!(refused["code"], "invalid_field");
    }
    let path = "/api/v1/pop/queue/q?consumerGroup=g&leaseSeconds=9";
    let popped = routes.get(path).await;
    assert_eq!(popped["messages"][0]["transactionId"], "a");
    assert_about(from("q").nothing(&*store).await, Duration::from_secs(9));
}
