//! Limits: a request past a limit is refused or waits, and requests within it are served as before.

use serde_json::json;

use crate::{
    fixture::{Fixture, on_both_stores},
    server::until,
    wire::{Line, get},
};

on_both_stores! {
    a_hold_past_the_limit_is_refused_and_earlier_holds_are_served,
}

// One message for each pop: without a batch size a pop takes all available messages.
const POP: &str = "/api/v1/pop/queue/q?wait=true&timeout=80000&autoAck=true&batch=1";

async fn a_hold_past_the_limit_is_refused_and_earlier_holds_are_served(fixture: Fixture) {
    let server = fixture
        .serve()
        .flags(&["--wake-max-waiters", "2"])
        .start()
        .await;
    let held = [server.hold(POP), server.hold(POP)];
    server.until_waiting(2).await;
    for path in [POP, "/api/v1/pop/queue/another?wait=true"] {
        let refused = server.get(path).await;
        assert_eq!(refused.status, 503);
        assert_eq!(refused.header("retry-after"), "1");
        assert_eq!(refused.problem()["type"], "urn:wakeline:too-many-waiters");
    }
    // A pop that does not wait needs no waiter.
    assert_eq!(server.get("/api/v1/pop/queue/q").await.status, 204);
    for n in 0..2 {
        server.push("q", json!(n)).await;
    }
    for held in held {
        assert_eq!(held.await.unwrap().payloads().len(), 1);
    }
    // And another hold is accepted again.
    let held = server.hold(POP);
    server.until_waiting(1).await;
    server.push("q", json!("later")).await;
    assert_eq!(held.await.unwrap().payloads(), [json!("later")]);
}

#[tokio::test]
async fn waiters_of_one_topic_leave_room_for_another() {
    let flags = ["--wake-max-waiters-per-topic", "1"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    let held = server.hold(POP);
    server.until_waiting(1).await;
    let refused = server.get(POP).await;
    assert_eq!(refused.problem()["type"], "urn:wakeline:too-many-waiters");
    let other = server.hold("/api/v1/pop/queue/other?wait=true&timeout=80000");
    server.until_waiting(2).await;
    server.push("other", json!(1)).await;
    server.push("q", json!(2)).await;
    assert_eq!(other.await.unwrap().payloads(), [json!(1)]);
    assert_eq!(held.await.unwrap().payloads(), [json!(2)]);
}

#[tokio::test]
async fn a_connection_past_the_limit_gets_only_the_health_probes() {
    let flags = ["--http-max-connections", "2"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    let mut one = Line::http1(server.address()).await;
    let mut other = Line::http1(server.address()).await;
    for line in [&mut one, &mut other] {
        assert_eq!(line.call(get("/livez")).await.unwrap().status, 200);
    }
    let refused = server.get("/v1/waits").await;
    assert_eq!(refused.status, 503);
    assert_eq!(
        refused.problem()["type"],
        "urn:wakeline:too-many-connections"
    );
    assert_eq!(refused.header("retry-after"), "1");
    for probe in ["/livez", "/readyz"] {
        assert_eq!(server.get(probe).await.status, 200);
    }
    assert_eq!(one.call(get("/v1/waits")).await.unwrap().status, 200);
    drop(other);
    until("room again", async || {
        (server.get("/v1/waits").await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_wait_longer_than_max_hold_is_refused_or_shortened() {
    let flags = ["--http-max-hold", "1s", "--http-default-hold", "1s"];
    let server = Fixture::sqlite().serve().flags(&flags).start().await;
    let demanded = server
        .get("/api/v1/pop/queue/q?wait=true&timeout=1001")
        .await;
    assert_eq!(demanded.status, 400);
    assert_eq!(demanded.problem()["field"], "timeout");
    let preferred = crate::wire::with_header(get("/api/v1/pop/queue/q"), "prefer", "wait=3600");
    let answer = server.call(preferred).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("preference-applied"), "wait=1");
    assert_eq!(
        server.get("/api/v1/pop/queue/q?wait=true").await.status,
        204
    );
}
