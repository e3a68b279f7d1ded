//! The disk of the database is full: a push is told so, what needs no room goes on, and when there
//! is room again the same server takes pushes again.

use serde_json::{Value, json};
use wakeline_testbed::{Postgres, SmallDisk};

use crate::{
    fixture::Fixture,
    metrics::Metrics,
    server::{Serve, Server, until},
    wire::{Answer, request},
};

const LARGE: usize = 200_000;

mod on_sqlite {
    use super::*;

    #[tokio::test]
    async fn a_full_disk_refuses_pushes_and_nothing_else_until_there_is_room() {
        let disk = SmallDisk::mount(40).unwrap();
        let data = disk.path().join("data").display().to_string();
        let serve = Serve::new(&["--data", &data]).env("WAKELINE_LISTEN", "127.0.0.1:0");
        let server = serve.start().await;
        super::a_full_disk_refuses_pushes_and_nothing_else_until_there_is_room(&server, &disk)
            .await;
    }
}

/// With a PostgreSQL of its own, whose tables are on the small disk.
mod on_postgres {
    use super::*;

    #[tokio::test]
    async fn a_full_disk_refuses_pushes_and_nothing_else_until_there_is_room() {
        let disk = SmallDisk::mount(64).unwrap();
        let postgres = Postgres::start().unwrap();
        let url = postgres.database_on(&disk).unwrap();
        let fixture = Fixture::postgres_at(url);
        let server = fixture.serve().start().await;
        super::a_full_disk_refuses_pushes_and_nothing_else_until_there_is_room(&server, &disk)
            .await;
    }
}

async fn push_large(server: &Server, queue: &str, number: usize) -> Answer {
    let payload = format!("{number} {}", "x".repeat(LARGE));
    let items = json!({"items": [{"queue": queue, "payload": payload}]});
    server.post("/api/v1/push", &items).await
}

/// The number of a message that was pushed by `push_large`.
fn number_of(payload: &Value) -> usize {
    let (number, _) = payload.as_str().unwrap().split_once(' ').unwrap();
    number.parse().unwrap()
}

/// Pushes until the disk is full. Returns how many were acknowledged.
async fn fill(server: &Server, queue: &str) -> usize {
    for number in 0..500 {
        let answer = push_large(server, queue, number).await;
        if answer.status == 201 {
            continue;
        }
        refused_for_room(&answer);
        return number;
    }
    panic!("the disk is never full");
}

/// The payload of the next message.
async fn pop_and_ack(server: &Server, queue: &str) -> Value {
    let answer = server
        .get(&format!("/api/v1/pop/queue/{queue}?batch=1"))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let claim = answer.json();
    let message = &claim["messages"][0];
    let ack = json!({
        "transactionId": message["transactionId"],
        "partitionId": message["partitionId"],
        "leaseId": claim["leaseId"],
        "status": "completed",
    });
    let acked = server.post("/api/v1/ack", &ack).await;
    assert_eq!(acked.status, 200, "{}", acked.text());
    assert_eq!(acked.json()[0]["success"], true, "{}", acked.text());
    answer.payloads().remove(0)
}

async fn delete_queue(server: &Server, queue: &str) {
    let path = format!("/api/v1/resources/queues/{queue}");
    let deleted = server.call(request("DELETE", &path, "".into())).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
}

fn refused_for_room(answer: &Answer) {
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_eq!(answer.header("retry-after"), "1");
    let problem = answer.problem();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("nothing was done"), "{detail}");
    assert_eq!(problem["type"], "urn:wakeline:disk-full");
}

async fn a_full_disk_refuses_pushes_and_nothing_else_until_there_is_room(
    server: &Server,
    disk: &SmallDisk,
) {
    server.push("small", json!("one")).await;
    server.push("deleted", json!("one")).await;
    // The first of its kind needs room: PostgreSQL's empty tables have no page.
    server.push("large", json!("first")).await;
    assert_eq!(pop_and_ack(server, "large").await, json!("first"));
    server.push("deleted before", json!("one")).await;
    delete_queue(server, "deleted%20before").await;
    disk.fill_but(6 << 20).unwrap();
    let acknowledged = fill(server, "large").await;
    assert!(acknowledged > 0);
    assert_full_disk_is_reported(server).await;

    let mut popped = Vec::new();
    for _ in 0..acknowledged {
        popped.push(number_of(&pop_and_ack(server, "large").await));
    }
    // What was refused is not among them.
    assert_eq!(popped, Vec::from_iter(0..acknowledged));
    assert_eq!(server.get("/api/v1/pop/queue/large").await.status, 204);
    let listed = server.get("/api/v1/messages?queue=small").await;
    assert_eq!(listed.status, 200, "{}", listed.text());
    delete_queue(server, "deleted").await;
    refused_for_room(&push_large(server, "other", 0).await);

    disk.empty().unwrap();
    until("readiness", async || {
        (server.get("/readyz").await.text() == "ready\n").then_some(())
    })
    .await;
    assert_eq!(gauge(server).await, 0.0);
    let log = server.log();
    // As SQLite and as PostgreSQL say it.
    let lines = |texts: [&str; 2]| -> usize {
        let counts = texts.map(|text| log.matches(text).count());
        counts.into_iter().sum()
    };
    let begins = ["the disk is full: what needs", "PostgreSQL's disk is full"];
    assert_eq!(lines(begins), 1, "{log}");
    let ends = ["room on the disk again", "room on its disk again"];
    assert_eq!(lines(ends), 1, "{log}");
    for number in 0..10 {
        let answer = push_large(server, "large", number).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    let rest = server
        .get("/api/v1/pop/queue/large?batch=100&autoAck=true")
        .await;
    let numbers: Vec<usize> = rest.payloads().iter().map(number_of).collect();
    assert_eq!(numbers, Vec::from_iter(0..10));
    let small = server.get("/api/v1/pop/queue/small?autoAck=true").await;
    assert_eq!(small.payloads(), [json!("one")]);
}

/// The node is ready all the same: consumers that a load balancer took away could make no room.
async fn assert_full_disk_is_reported(server: &Server) {
    let plain = server.get("/readyz").await;
    assert_eq!(plain.status, 200);
    let text = plain.text();
    assert!(text.contains("degraded: the disk"), "{text}");
    let verbose = server.get("/readyz?verbose").await;
    assert_eq!(verbose.status, 200);
    let verbose = verbose.json();
    assert_eq!(verbose["status"], "degraded");
    assert_eq!(verbose["store"]["answers"], true);
    let error = verbose["store"]["error"].as_str().unwrap();
    assert!(error.contains("is full"), "{error}");
    for path in ["/livez", "/health"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    assert_eq!(gauge(server).await, 1.0);
}

async fn gauge(server: &Server) -> f64 {
    let metrics = Metrics::parse(&server.get("/metrics").await.text());
    metrics.value("wakeline_disk_full", &[]).expect("the gauge")
}
