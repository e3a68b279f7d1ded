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

pub(crate) async fn a_transaction_with_an_unsupported_operation_is_refused_whole(store: TestStore) {
    let routes = Routes::of(store.queue());
    push(&*store, "in", "p", &["a"]).await;
    let claimed = from("in").claim_soon(&*store).await;
    let operations = json!([push_operation("pushed"), ack_operation(&claimed)]);
    let gate = json!({"op": "putIfAbsent", "ns": "gates", "key": "k", "value": true});
    let timer = json!({"op": "schedule", "queue": "out", "timerKey": "k", "delayMs": 1});
    for (field, code, body) in [
        (
            "kv",
            "kv_unsupported",
            json!({"operations": operations, "kv": [gate]}),
        ),
        (
            "kv",
            "kv_unsupported",
            json!({"operations": [], "kv": [gate]}),
        ),
        (
            "timers",
            "timers_unsupported",
            json!({"operations": operations, "kv": [], "timers": [timer]}),
        ),
        (
            "positions",
            "positions_unsupported",
            json!({"operations": operations, "positions": [{"offset": 1}]}),
        ),
        (
            "operations[2].type",
            "invalid_field",
            json!({"operations": [operations[0], operations[1], {"type": "kv"}]}),
        ),
    ] {
        let (status, refused) = routes.ask_post(TRANSACTION, &body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}: {refused}");
        assert_eq!(
            (&refused["field"], &refused["code"]),
            (&json!(field), &json!(code))
        );
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
        assert_eq!(refused["code"], "conflation_unsupported");
        let text = refused["error"].as_str().expect("a text");
        assert!(text.contains("nothing was taken"), "{text}");
    }
    let popped = routes
        .get("/api/v1/pop/queue/n.t?consumerGroup=g&conflation=false")
        .await;
    assert_eq!(popped["messages"].as_array().map(Vec::len), Some(2));
}

pub(crate) async fn features_of_queen_that_are_missing_are_refused_with_a_code(store: TestStore) {
    let routes = Routes::of(store.queue());
    push(&*store, "q", "p", &["a"]).await;
    for (path, code) in [
        ("kv", "kv_unsupported"),
        ("kv/space/a/key", "kv_unsupported"),
        ("resources/kv/namespaces", "kv_unsupported"),
        ("timers", "timers_unsupported"),
        ("timers/q/a/key", "timers_unsupported"),
        ("locks", "locks_unsupported"),
        ("fetch", "fetch_unsupported"),
        ("partitions/changed", "changed_partitions_unsupported"),
        ("ephemeral/push", "ephemeral_unsupported"),
        ("ephemeral/pop", "ephemeral_unsupported"),
        ("ephemeral/queues/q/depth", "ephemeral_unsupported"),
        ("dlq/1/replay", "replay_unsupported"),
    ] {
        let path = format!("/api/v1/{path}");
        let asked = json!({"queue": "q", "messages": [{"payload": 1}], "operations": []});
        for (status, refused) in [
            routes.ask_get(&format!("{path}?queue=q&wait=true")).await,
            routes.ask_post(&path, &asked).await,
        ] {
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {refused}");
            assert_eq!(refused["code"], code, "{path}");
            let text = refused["error"].as_str().expect("a text");
            assert!(text.contains("this server has no"), "{text}");
            assert!(text.contains("Nothing was done"), "{text}");
        }
    }
    assert_eq!(store.messages().await, 1);
    assert_eq!(store.database.count("queue_group").await, 0);
}

pub(crate) async fn binary_bodies_are_refused(store: TestStore) {
    let routes = Routes::of(store.queue());
    for (path, first) in [("push", "QPB1"), ("transaction", "QTB1")] {
        let path = format!("/api/v1/{path}");
        let (status, refused) = routes
            .ask_post_bytes(&path, [first.as_bytes(), &[8, 0, 255]].concat())
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {refused}");
        assert_eq!(refused["code"], "binary_unsupported", "{path}");
    }
}
