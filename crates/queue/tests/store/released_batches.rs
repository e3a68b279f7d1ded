//! Late acknowledgements of a batch that another acknowledgement has released.

use serde_json::{Value, json};
use wakeline_queue::ack::{
    AckOutcome::{AlreadyDone, BatchReleased, LeaseLost},
    AckStatus::{Completed, DeadLetter, Failed, Retry},
};

use crate::{
    calls::{
        DEAD, GOES_ON, LEASE, RELEASED, complete, fail, from, make_dead, names, outcome, push,
    },
    http_calls::Routes,
    test_store::TestStore,
};

pub(crate) async fn acks_after_a_nack_answer_that_the_batch_was_released(store: TestStore) {
    for (queue, status) in [("f", Failed), ("r", Retry), ("d", DeadLetter)] {
        push(&*store, queue, "p", &["a", "b", "c", "d"]).await;
        let claimed = from(queue).batch(4).claim(&*store).await;
        assert_eq!(complete(&*store, &claimed, "a").await, GOES_ON);
        let nacked = outcome(&*store, &claimed, "b", status).await;
        assert!(nacked.is_success() && nacked.has_released_lease());
        for late in [Completed, Failed, Retry, DeadLetter] {
            let told = outcome(&*store, &claimed, "c", late).await;
            assert_eq!(told, BatchReleased, "{status:?}");
        }
        // Also when another consumer has got the messages, and when its lease is over.
        let again = from(queue).batch(9).claim(&*store).await;
        assert_eq!(names(&again).last(), Some(&"d"), "it is redelivered");
        assert_eq!(complete(&*store, &claimed, "d").await, BatchReleased);
        store.pass(LEASE).await;
        assert_eq!(complete(&*store, &claimed, "d").await, BatchReleased);
        // The answer does not announce a redelivery that does not come.
        assert_eq!(complete(&*store, &claimed, "a").await, AlreadyDone);
        assert_eq!(complete(&*store, &claimed, "unknown").await, LeaseLost);
        let last = from(queue).batch(9).claim(&*store).await;
        assert_eq!(complete(&*store, &last, "d").await, RELEASED);
        assert_eq!(complete(&*store, &claimed, "d").await, AlreadyDone);
    }
}

pub(crate) async fn an_ack_of_a_dead_message_of_a_released_batch_does_not_announce_a_redelivery(
    store: TestStore,
) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    assert_eq!(make_dead(&*store, &claimed, "b").await, DEAD);
    assert_eq!(complete(&*store, &claimed, "b").await, LeaseLost);
    assert_eq!(complete(&*store, &claimed, "a").await, BatchReleased);
    assert_eq!(complete(&*store, &claimed, "c").await, BatchReleased);
}

pub(crate) async fn a_nack_releases_the_batch_of_its_partition_and_group_only(store: TestStore) {
    for partition in ["p1", "p2"] {
        let names = ["a", "b"].map(|name| format!("{partition}-{name}"));
        push(&*store, "q", partition, &[&names[0], &names[1]]).await;
    }
    let claimed = from("q").batch(4).partitions(2).claim(&*store).await;
    let other = from("q").group("h").batch(4).partitions(2);
    let other = other.claim(&*store).await;
    assert_eq!(fail(&*store, &claimed, "p1-a").await, RELEASED);
    assert_eq!(complete(&*store, &claimed, "p1-b").await, BatchReleased);
    assert_eq!(complete(&*store, &claimed, "p2-a").await, GOES_ON);
    assert_eq!(complete(&*store, &other, "p1-b").await, RELEASED);
    // An expired lease is not a released one.
    store.pass(LEASE).await;
    assert_eq!(complete(&*store, &claimed, "p2-b").await, LeaseLost);
}

async fn acked(routes: &Routes, message: &Value, status: &str) -> Value {
    let body = json!({
        "transactionId": message["transactionId"], "partitionId": message["partitionId"],
        "leaseId": message["leaseId"], "consumerGroup": "g", "status": status,
    });
    let answer = routes.post("/api/v1/ack", &body).await;
    answer[0].clone()
}

pub(crate) async fn each_ack_of_a_released_batch_is_answered_by_its_own_outcome(store: TestStore) {
    let routes = Routes::of(store.queue());
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let popped = routes.get("/api/v1/pop/queue/q?consumerGroup=g").await;
    let message = |index: usize| &popped["messages"][index];
    let completed = acked(&routes, message(0), "completed").await;
    assert_eq!(completed["success"], true, "{completed}");
    let failed = acked(&routes, message(1), "failed").await;
    assert_eq!(
        (&failed["success"], &failed["leaseReleased"]),
        (&json!(true), &json!(true))
    );
    let late = acked(&routes, message(2), "completed").await;
    assert_eq!(
        late,
        json!({
            "index": 0, "transactionId": "c", "success": false, "leaseReleased": false,
            "dlq": false, "noop": false, "code": "batch_released",
            "error": "invalid or expired lease: another acknowledgement of this batch was failed, \
                      retry or dlq, which released the whole batch; this message is redelivered",
        })
    );
    let again = routes.get("/api/v1/pop/queue/q?consumerGroup=g").await;
    let again = again["messages"].as_array().expect("messages").iter();
    assert!(
        again
            .map(|message| &message["transactionId"])
            .eq(["b", "c"])
    );
}
