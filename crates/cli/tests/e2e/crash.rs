//! `kill -9`: acknowledged messages are still stored, and leased ones stay leased.

use std::time::Duration;

use serde_json::{Value, json};
use wakeline_client::{Client, PopRequest, PushItem};
use wakeline_testbed::Postgres;

use crate::{fixture::Fixture, server::until};

mod on_sqlite {
    use super::*;

    #[tokio::test]
    async fn every_acknowledged_push_survives_a_kill() {
        super::every_acknowledged_push_survives_a_kill(Fixture::sqlite()).await;
    }

    #[tokio::test]
    async fn a_lease_survives_a_kill() {
        super::a_lease_survives_a_kill(Fixture::sqlite()).await;
    }
}

/// With a PostgreSQL of its own: the shared one does not sync.
mod on_postgres {
    use super::*;

    #[tokio::test]
    async fn every_acknowledged_push_survives_a_kill() {
        let postgres = Postgres::start().unwrap();
        let fixture = Fixture::postgres_at(postgres.url());
        super::every_acknowledged_push_survives_a_kill(fixture).await;
    }

    #[tokio::test]
    async fn a_lease_survives_a_kill() {
        let postgres = Postgres::start().unwrap();
        super::a_lease_survives_a_kill(Fixture::postgres_at(postgres.url())).await;
    }
}

const PRODUCERS: usize = 8;

async fn every_acknowledged_push_survives_a_kill(fixture: Fixture) {
    let mut server = fixture.serve().start().await;
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|producer| tokio::spawn(produce(server.url(), producer)))
        .collect();
    // In the middle of it, with every producer at work.
    until("pushes in number", async || {
        let metrics = server.get("/metrics").await.text();
        let line = metrics.lines().find_map(|line| {
            line.strip_prefix(r#"wakeline_http_requests_total{method="POST",status="201"} "#)
        })?;
        (line.parse::<u64>().ok()? >= 200).then_some(())
    })
    .await;
    server.kill();
    let mut acknowledged = Vec::new();
    for producer in producers {
        acknowledged.push(producer.await.unwrap());
    }
    assert!(acknowledged.iter().sum::<u64>() >= 200);

    let server = fixture.serve().start().await;
    for (producer, acknowledged) in acknowledged.into_iter().enumerate() {
        let path = format!("/api/v1/pop/queue/q/partition/{producer}?batch=10000&autoAck=true");
        let found = server.get(&path).await.payloads();
        // In order, none missing; the message of the unanswered push may or may not be stored.
        let expected: Vec<Value> = (0..found.len()).map(|n| json!(n)).collect();
        assert_eq!(found, expected);
        let range = acknowledged..=acknowledged + 1;
        assert!(
            range.contains(&(found.len() as u64)),
            "{acknowledged} acknowledged"
        );
    }
}

/// Pushes 0, 1, 2… one after the other, and returns how many were acknowledged.
async fn produce(url: String, producer: usize) -> u64 {
    let client = Client::new(url, None).unwrap();
    let mut acknowledged = 0;
    loop {
        let item = PushItem::new("q", &acknowledged).unwrap();
        if client
            .push(&[item.partition(producer.to_string())])
            .await
            .is_err()
        {
            return acknowledged;
        }
        acknowledged += 1;
    }
}

async fn a_lease_survives_a_kill(fixture: Fixture) {
    let lease = ["--queue-lease", "5s"];
    let mut server = fixture.serve().flags(&lease).start().await;
    server.push("q", json!("once")).await;
    let client = Client::new(server.url(), None).unwrap();
    let first = client.pop(&PopRequest::new("q")).await.unwrap().unwrap();
    let created = std::time::Instant::now();
    server.kill();

    let server = fixture.serve().flags(&lease).start().await;
    let again = server.get("/api/v1/pop/queue/q").await;
    // Only within the lease: a restart that took longer proves nothing.
    if created.elapsed() < Duration::from_secs(4) {
        assert_eq!(again.status, 204, "handed out twice within its lease");
    }
    // And the message is redelivered to a waiting pop: the end of the lease is read from the store.
    let redelivered = server
        .get("/api/v1/pop/queue/q?wait=true&timeout=60000")
        .await;
    assert_eq!(redelivered.payloads(), [json!("once")]);
    let json = redelivered.json();
    assert_ne!(json["leaseId"].as_str(), first.lease_id.as_deref());
}
