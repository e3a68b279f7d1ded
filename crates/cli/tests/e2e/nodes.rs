//! Two nodes on one database: a commit on one node wakes the waiters of the other.

use serde_json::json;
use wakeline_testbed::{Redis, psql};

use crate::{
    fixture::Fixture,
    server::{Server, until},
};

/// The fallback is so rare that only the bus can have carried a wake.
const NO_FALLBACK: [&str; 4] = ["--wake-fallback", "1h", "--wake-fallback-degraded", "1h"];
const POP: &str = "/api/v1/pop/queue/q?wait=true&timeout=80000&batch=1";

/// Until the bus of the server is in `mode`: before it is live, a push on another node may cause no
/// wake, which costs latency only.
pub(crate) async fn until_mode(server: &Server, kind: &str, mode: &str) {
    until(&format!("{kind} to be {mode}"), async || {
        let ready = server.get("/readyz?verbose").await.json();
        let bus = &ready["bus"];
        (bus["kind"] == kind && bus["mode"] == mode).then_some(())
    })
    .await;
}

async fn a_push_on_one_node_wakes_the_other(one: &Server, other: &Server, kind: &str) {
    for server in [one, other] {
        until_mode(server, kind, "live").await;
    }
    for (waits, pushes) in [(one, other), (other, one)] {
        let held = waits.hold(&format!("{POP}&autoAck=true"));
        waits.until_waiting(1).await;
        waits.until_store_checks(1).await;
        assert_eq!(pushes.get("/v1/waits").await.json()["total"], 0);
        pushes.push("q", json!("across")).await;
        let answer = held.await.unwrap();
        assert_eq!(answer.payloads(), [json!("across")]);
        assert!(answer.header("server-timing").contains("desc=\"notify\""));
    }
    let ready = other.get("/readyz?verbose").await;
    assert_eq!(ready.status, 200);
    let ready = ready.json();
    assert_eq!(ready["status"], "ready");
    assert_eq!(ready["store"], json!({"kind": "postgres", "answers": true}));
    assert!(ready["bus"]["roundTripMs"].is_number(), "{ready}");
}

#[tokio::test]
async fn a_push_on_one_node_wakes_the_other_by_postgres() {
    let fixture = Fixture::postgres().await;
    let start = || fixture.serve().flags(&NO_FALLBACK).start();
    let (one, other) = tokio::join!(start(), start());
    a_push_on_one_node_wakes_the_other(&one, &other, "postgres").await;
}

#[tokio::test]
async fn a_push_on_one_node_wakes_the_other_by_redis() {
    let fixture = Fixture::postgres().await;
    // A Redis of its own: other tests publish on the same channel.
    let redis = Redis::start().unwrap();
    let bus = redis.url();
    let start = || {
        fixture
            .serve()
            .flags(&NO_FALLBACK)
            .flags(&["--bus", &bus])
            .start()
    };
    let (one, other) = tokio::join!(start(), start());
    a_push_on_one_node_wakes_the_other(&one, &other, "redis").await;
}

#[tokio::test]
async fn a_push_while_the_listening_session_is_cut_reaches_the_waiting_pop() {
    let fixture = Fixture::postgres().await;
    let flags = ["--bus-canary", "500ms"];
    let waits = fixture
        .serve()
        .flags(&NO_FALLBACK)
        .flags(&flags)
        .start()
        .await;
    let pushes = fixture.serve().start().await;
    until_mode(&waits, "postgres", "live").await;
    let before = waits.get("/readyz?verbose").await.json()["bus"]["connects"].clone();
    let held = waits.hold(POP);
    waits.until_waiting(1).await;
    waits.until_store_checks(1).await;
    // Cut every listening session, and push right after it.
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    let rows = psql(fixture.postgres_url(), cut).unwrap();
    assert!(rows.contains('t'), "nobody listened: {rows:?}");
    pushes.push("q", json!("meanwhile")).await;
    assert_eq!(held.await.unwrap().payloads(), [json!("meanwhile")]);
    until("a new line", async || {
        let ready = waits.get("/readyz?verbose").await.json();
        let connects = ready["bus"]["connects"].as_u64();
        (connects > before.as_u64() && ready["bus"]["mode"] == "live").then_some(())
    })
    .await;
}
