use serde_json::json;
use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    claim::Claim,
    id,
};

use crate::{
    calls::{
        GOES_ON, LEASE, RELEASED, ack, ack_all, ack_of, assert_about, complete, configure, from,
        names, outcome, part, push, retry, without_lease,
    },
    http_calls::Routes,
    test_store::TestStore,
};

pub(crate) async fn a_completed_batch_advances_the_cursor_and_releases_the_lease(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(complete(&*store, &claimed, "a").await, GOES_ON);
    assert_eq!(complete(&*store, &claimed, "b").await, RELEASED);
    assert_eq!(names(&from("q").claim(&*store).await), ["c"]);
}

pub(crate) async fn completing_part_of_a_batch_keeps_the_lease(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    store.pass(LEASE / 2).await;
    assert_eq!(complete(&*store, &claimed, "b").await, GOES_ON);
    // The lease is not extended.
    assert_about(from("q").nothing(&*store).await, LEASE / 2);
    store.pass(LEASE / 2).await;
    assert_eq!(names(&from("q").batch(3).claim(&*store).await), ["c"]);
}

pub(crate) async fn completing_a_message_completes_those_before_it(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    assert_eq!(complete(&*store, &claimed, "c").await, RELEASED);
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn an_ack_below_the_cursor_changes_nothing(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    complete(&*store, &claimed, "b").await;
    let unfenced = without_lease(&claimed);
    for claimed in [&claimed, &unfenced] {
        let completed = complete(&*store, claimed, "a").await;
        assert_eq!(completed, AckOutcome::AlreadyDone);
        for status in [AckStatus::Failed, AckStatus::Retry, AckStatus::DeadLetter] {
            let refused = outcome(&*store, claimed, "b", status).await;
            assert_eq!(refused, AckOutcome::Passed);
        }
    }
    assert_eq!(store.database.count("queue_message_flag").await, 0);
    assert_eq!(store.database.count("queue_dead_letter").await, 0);
    assert_eq!(complete(&*store, &claimed, "c").await, RELEASED);
}

pub(crate) async fn an_ack_of_an_unknown_message_is_reported_and_keeps_the_lease(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q", "p2", &["elsewhere"]).await;
    let claimed = from("q").partition("p").claim(&*store).await;
    for transaction in ["unknown", "elsewhere"] {
        for status in [AckStatus::Completed, AckStatus::Failed] {
            let refused = outcome(&*store, &claimed, transaction, status).await;
            assert_eq!(refused, AckOutcome::Unknown);
        }
    }
    assert_eq!(complete(&*store, &claimed, "a").await, RELEASED);
}

pub(crate) async fn an_ack_of_a_group_that_never_claimed_is_refused(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let other = Claim {
        group: "other".to_owned(),
        ..claimed.clone()
    };
    let mut unknown = claimed.clone();
    unknown.parts[0].number = -1;
    for claimed in [other, unknown] {
        for (claimed, expected) in [
            (&claimed, AckOutcome::LeaseLost),
            (&without_lease(&claimed), AckOutcome::Unknown),
        ] {
            let refused = ack(&*store, claimed, "a", AckStatus::Completed).await;
            assert_eq!(refused, (expected, vec![]));
        }
    }
}

pub(crate) async fn an_ack_without_a_lease_moves_the_cursor_forward_only(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    let unfenced = without_lease(&claimed);
    store.pass(LEASE).await;
    // There is no lease that could be released.
    assert_eq!(complete(&*store, &unfenced, "b").await, GOES_ON);
    assert_eq!(
        complete(&*store, &unfenced, "a").await,
        AckOutcome::AlreadyDone
    );
    let next = from("q").claim(&*store).await;
    assert_eq!(names(&next), ["c"]);
    // While another consumer has the lease, it may complete that consumer's messages.
    assert_eq!(complete(&*store, &unfenced, "c").await, RELEASED);
    assert_eq!(complete(&*store, &next, "c").await, AckOutcome::AlreadyDone);
    assert_eq!(names(&from("q").claim(&*store).await), ["d"]);
}

pub(crate) async fn a_retried_message_is_redelivered_and_does_not_count_as_failed(
    store: TestStore,
) {
    push(&*store, "q", "p", &["a", "b"]).await;
    for _ in 0..10 {
        let claimed = from("q").batch(2).claim(&*store).await;
        assert_eq!(names(&claimed), ["a", "b"]);
        assert_eq!(retry(&*store, &claimed, "a").await, RELEASED);
        // The message after it is redelivered too.
        let late = complete(&*store, &claimed, "b").await;
        assert_eq!(late, AckOutcome::BatchReleased);
    }
    assert_eq!(store.database.count("queue_message_flag").await, 0);
}

pub(crate) async fn a_failed_message_waits_for_the_retry_delay(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let delay = LEASE / 2;
    configure(&*store, "q", |options| options.retry_delay_ms = 30_000).await;
    let claimed = from("q").claim(&*store).await;
    let (failed, wakes) = ack(&*store, &claimed, "a", AckStatus::Failed).await;
    assert_eq!((failed, wakes.len()), (RELEASED, 1));
    assert_about(from("q").nothing(&*store).await, delay);
    store.pass(delay).await;
    let claimed = from("q").claim(&*store).await;
    assert_eq!(names(&claimed), ["a"]);
    assert_eq!(retry(&*store, &claimed, "a").await, RELEASED);
    assert_eq!(names(&from("q").claim(&*store).await), ["a"]);
}

pub(crate) async fn a_repeated_ack_of_a_completed_batch_changes_nothing(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    let batch = || ["a", "b"].map(|name| ack_of(&claimed, name, AckStatus::Completed));
    let done = ack_all(&*store, batch().to_vec()).await;
    assert_eq!(done, [RELEASED, RELEASED]);
    // The answer was lost: the caller does not know whether it counted.
    let again = ack_all(&*store, batch().to_vec()).await;
    assert_eq!(again, [AckOutcome::AlreadyDone; 2]);
    // Also when the next consumer has the partition.
    let next = from("q").claim(&*store).await;
    let again = ack_all(&*store, batch().to_vec()).await;
    assert_eq!(again, [AckOutcome::AlreadyDone; 2]);
    for status in [AckStatus::Failed, AckStatus::Retry, AckStatus::DeadLetter] {
        let refused = outcome(&*store, &claimed, "a", status).await;
        assert_eq!(refused, AckOutcome::Passed);
    }
    assert_eq!(complete(&*store, &next, "c").await, RELEASED);
    assert_eq!(store.database.count("queue_message_flag").await, 0);
}

pub(crate) async fn each_refused_ack_has_a_code(store: TestStore) {
    let routes = Routes::of(store.queue());
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(2).claim_soon(&*store).await;
    assert_eq!(complete(&*store, &claimed, "a").await, GOES_ON);
    let ack = |transaction: &str, status: &str| {
        json!({
            "transactionId": transaction, "status": status, "leaseId": claimed.lease,
            "partitionId": id::partition(part(&claimed).number), "consumerGroup": "g",
        })
    };
    let mut foreign = ack("b", "completed");
    foreign["leaseId"] = json!("foreign");
    for (ack, code, text) in [
        (foreign, "lease_lost", "invalid or expired lease"),
        (ack("unknown", "completed"), "unresolvable", "unresolvable"),
        (ack("a", "failed"), "committed", "committed"),
    ] {
        let (alone, batch) = (
            routes.post("/api/v1/ack", &ack).await,
            routes
                .post("/api/v1/ack/batch", &json!({"acknowledgments": [ack]}))
                .await,
        );
        for answer in [&alone[0], &batch[0]] {
            assert_eq!(
                (&answer["success"], &answer["code"]),
                (&json!(false), &json!(code))
            );
            let error = answer["error"].as_str().expect("a text");
            assert!(error.contains(text), "{error}");
        }
        let operation = json!({"type": "ack"});
        let mut operation = operation.as_object().cloned().expect("an object");
        operation.extend(ack.as_object().cloned().expect("an object"));
        let body = json!({"operations": [operation]});
        let whole = routes.post("/api/v1/transaction", &body).await;
        assert_eq!(
            (&whole["success"], &whole["code"]),
            (&json!(false), &json!(code))
        );
    }
    let done = routes.post("/api/v1/ack", &ack("b", "completed")).await;
    assert_eq!(done[0].get("code"), None);
    let extended = format!("/api/v1/lease/{}/extend", claimed.lease.expect("a lease"));
    let extended = routes.post(&extended, &json!({})).await;
    assert_eq!(extended["code"], "lease_lost");
}
