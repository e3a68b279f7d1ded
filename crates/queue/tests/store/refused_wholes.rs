//! Requests that ask for what is not here: they are refused as a whole.

use http::StatusCode;
use serde_json::{Value, json};
use wakeline_queue::{claim::Claim, id};

use crate::{
    calls::{RELEASED, complete, from, names, push},
    http_calls::Routes,
    test_store::TestStore,
};

const TRANSACTION: &str = "/api/v1/transaction";

fn push_operation(transaction: &str) -> Value {
    let item = json!({"queue": "out", "payload": 1, "transactionId": transaction});
    json!({"type": "push", "items": [item]})
}

fn ack_operation(claimed: &Claim) -> Value {
    json!({
        "type": "ack", "transactionId": names(claimed)[0], "leaseId": claimed.lease,
        "partitionId": id::partition(claimed.parts[0].number), "consumerGroup": claimed.group,
    })
}

pub(crate) async fn a_transaction_that_asks_for_more_than_pushes_and_acks_does_nothing(
    store: TestStore,
) {
    let routes = Routes::of(store.queue());
    push(&*store, "in", "p", &["a"]).await;
    let claimed = from("in").claim_soon(&*store).await;
    let operations = json!([push_operation("pushed"), ack_operation(&claimed)]);
    let gate = json!({"op": "putIfAbsent", "ns": "gates", "key": "k", "value": true});
    let timer = json!({"op": "schedule", "queue": "out", "timerKey": "k", "delayMs": 1});
    for (field, body) in [
        ("kv", json!({"operations": operations, "kv": [gate]})),
        ("kv", json!({"operations": [], "kv": [gate]})),
        (
            "timers",
            json!({"operations": operations, "kv": [], "timers": [timer]}),
        ),
        (
            "positions",
            json!({"operations": operations, "positions": [{"offset": 1}]}),
        ),
        (
            "operations[2].type",
            json!({"operations": [operations[0], operations[1], {"type": "kv"}]}),
        ),
    ] {
        let (status, refused) = routes.ask_post(TRANSACTION, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {refused}");
        assert_eq!(refused["field"], field);
        let text = refused["error"].as_str().expect("a text");
        assert!(text.contains("nothing was done"), "{text}");
    }
    assert_eq!(store.messages().await, 1, "only the message that was there");
    let acked = complete(&*store, &claimed, "a").await;
    assert_eq!(acked, RELEASED, "it still has its lease");
}

pub(crate) async fn empty_parts_of_a_transaction_are_harmless(store: TestStore) {
    let routes = Routes::of(store.queue());
    for (transaction, part) in [("a", json!([])), ("b", Value::Null)] {
        let done = routes
            .post(
                TRANSACTION,
                &json!({
                    "operations": [push_operation(transaction)], "kv": part, "timers": part,
                    "positions": part,
                }),
            )
            .await;
        assert_eq!(done["success"], true, "{done}");
    }
    assert_eq!(store.messages().await, 2);
}

pub(crate) async fn a_conflating_pop_is_refused_and_leases_nothing(store: TestStore) {
    let routes = Routes::of(store.queue());
    push(&*store, "n.t", "p", &["a", "b"]).await;
    for path in [
        "/api/v1/pop/queue/n.t?",
        "/api/v1/pop/queue/n.t/partition/p?",
        "/api/v1/pop?namespace=n&",
    ] {
        let asked = format!("{path}consumerGroup=g&wait=true&conflation=true");
        let (status, refused) = routes.ask_get(&asked).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{asked}: {refused}");
        assert_eq!(refused["field"], "conflation");
        let text = refused["error"].as_str().expect("a text");
        assert!(text.contains("nothing was taken"), "{text}");
    }
    let popped = routes
        .get("/api/v1/pop/queue/n.t?consumerGroup=g&conflation=false")
        .await;
    assert_eq!(popped["messages"].as_array().map(Vec::len), Some(2));
}
