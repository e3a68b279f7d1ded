//! Counters, and the state of the server.

use serde_json::{Value, json};

use super::{assert_has, complete, move_to_dead_letters, pop, push, read};
use crate::{
    fixture::{Fixture, on_both_stores},
    server::Server,
};

on_both_stores! {
    pushes_pops_and_acks_are_counted,
    counts_survive_a_restart,
    health_and_state_of_the_server_are_reported,
    the_other_analytics_routes_have_queens_fields,
}

/// Writes the counters to the store, which the server does every few seconds by itself.
pub(super) async fn refresh(server: &Server) -> Value {
    let answer = server.post("/api/v1/stats/refresh", &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

async fn work(server: &Server) {
    push(server, "q", "p", &["a", "b", "c", "d"]).await;
    complete(server, "q", "g", 2).await;
    move_to_dead_letters(server, "q", "g").await;
    pop(server, "q", "g", 1).await;
}

async fn pushes_pops_and_acks_are_counted(fixture: Fixture) {
    let server = fixture.serve().start().await;
    work(&server).await;
    let refreshed = refresh(&server).await;
    assert_eq!(refreshed["queuesUpdated"], 1);
    assert_has(
        &refreshed,
        &[
            "tasks.tasksUpdated",
            "engine",
            "system.systemUpdated",
            "namespaces.namespacesUpdated",
            "refreshedAt",
            "segPartitions",
        ],
    );

    let sum = |rows: &Value, field: &str| -> i64 {
        let rows = rows.as_array().expect("rows");
        rows.iter()
            .map(|row| row[field].as_i64().expect(field))
            .sum()
    };
    let ops = read(&server, "/api/v1/analytics/queue-ops").await;
    assert_eq!(ops["queues"], json!(["q"]));
    assert_eq!(sum(&ops["series"], "pushMessages"), 4);
    assert_eq!(sum(&ops["series"], "popMessages"), 4);
    // The ack of the second message completed the first one too, and counts as one ack.
    assert_eq!(sum(&ops["series"], "ackSuccess"), 1);
    assert_eq!(sum(&ops["series"], "ackFailed"), 1);
    assert_has(
        &ops["series"][0],
        &[
            "bucket",
            "avgLagMs",
            "maxLagMs",
            "popEmpty",
            "queueName",
            "ackRequests",
            "parkedCount",
            "ackPerSecond",
            "popPerSecond",
            "pushRequests",
            "transactions",
            "pushPerSecond",
            "emptyPerSecond",
            "partitionCount",
            "partitionsCreated",
            "partitionsDeleted",
        ],
    );
    let other = read(&server, "/api/v1/analytics/queue-ops?queue=other").await;
    assert_eq!(other["series"], json!([]));
    let lag = read(&server, "/api/v1/analytics/queue-lag").await;
    assert_eq!(sum(&lag, "popCount"), 4);
    assert_has(
        &lag[0],
        &[
            "avgLagMs",
            "maxLagMs",
            "queueName",
            "bucketTime",
            "bucketMinutes",
        ],
    );
    let workers = read(&server, "/api/v1/analytics/worker-metrics").await;
    assert_eq!(workers["summary"]["totalPushMessages"], 4);
    assert_eq!(workers["summary"]["totalDlq"], 1);
    assert_eq!(workers["queues"][0]["queueName"], "q");
    assert_has(
        &workers,
        &[
            "workers",
            "timeRange.from",
            "pointCount",
            "timeSeries.0.timestamp",
            "bucketMinutes",
        ],
    );
    let analytics = read(&server, "/api/v1/status/analytics").await;
    assert_eq!(analytics["interval"], "hour");
    let points = analytics["dataPoints"].as_array().unwrap();
    assert_eq!(points.len(), 25);
    assert_eq!(sum(&analytics["dataPoints"], "messages"), 4);
    let long_ago = "/api/v1/status/analytics?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z";
    let long_ago = read(&server, long_ago).await;
    assert_eq!(sum(&long_ago["dataPoints"], "messages"), 0);

    let status = read(&server, "/api/v1/status").await;
    assert_eq!(status["messages"]["total"], 4);
    assert_eq!(status["messages"]["processing"], 1);
    assert_eq!(status["messages"]["deadLetter"], 1);
    assert_eq!(status["leases"]["active"], 1);
    assert_eq!(status["errors"]["dlqMessages"], 1);
    assert_eq!(status["queues"][0]["name"], "q");
    assert_eq!(sum(&status["throughput"], "ingested"), 4);
    assert_has(
        &status,
        &[
            "errors.ackFailed",
            "errors.dbErrors",
            "leases.totalAcked",
            "leases.totalBatchSize",
            "leases.partitionsWithLeases",
            "workers",
            "messages.requests.push",
            "messages.batchEfficiency.ack",
            "statsAge",
            "timeRange.to",
            "pointCount",
            "bucketMinutes",
            "deadLetterQueue",
            "queues.0.totalConsumed",
        ],
    );
}

async fn counts_survive_a_restart(fixture: Fixture) {
    let mut server = fixture.serve().start().await;
    work(&server).await;
    server.signal("TERM");
    assert!(server.exit().await.success(), "{}", server.log());
    let server = fixture.serve().start().await;
    let workers = read(&server, "/api/v1/analytics/worker-metrics").await;
    assert_eq!(workers["summary"]["totalPushMessages"], 4);
}

async fn health_and_state_of_the_server_are_reported(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let health = read(&server, "/health").await;
    assert_eq!(
        (&health["status"], &health["database"]),
        (&json!("healthy"), &json!("connected"))
    );
    assert_has(&health, &["engine", "version"]);
    let metrics = server.get("/metrics/prometheus").await;
    assert_eq!(metrics.status, 200);
    assert!(metrics.header("content-type").starts_with("text/plain"));
    assert!(metrics.text().contains("# TYPE wakeline_"));
    for path in [
        "/api/v1/system/shared-state",
        "/internal/api/shared-state/stats",
        "/internal/api/inter-instance/stats",
    ] {
        let state = read(&server, path).await;
        assert_eq!(state["maintenance_mode"], false, "{path}");
        assert_has(&state, &["enabled", "pop_maintenance_mode", "reason"]);
    }
    let buffers = read(&server, "/api/v1/status/buffers").await;
    assert_eq!(
        buffers,
        json!({"pending": 0, "failed": 0, "dbHealthy": true, "worker": 0})
    );
}

async fn the_other_analytics_routes_have_queens_fields(fixture: Fixture) {
    let server = fixture.serve().start().await;
    for (path, members) in [
        (
            "system-metrics",
            &["replicas", "replicaCount", "pointCount"][..],
        ),
        ("queue-parked-replicas", &["series", "replicas"]),
        ("retention", &["series", "totals.totalMsgs"]),
    ] {
        let shown = read(&server, &format!("/api/v1/analytics/{path}")).await;
        assert_has(&shown, members);
        assert_has(&shown, &["timeRange.from", "timeRange.to", "bucketMinutes"]);
    }
    let database = read(&server, "/api/v1/analytics/postgres-stats").await;
    assert_has(
        &database,
        &[
            "database",
            "timestamp",
            "deadTuples",
            "hotUpdates",
            "indexCache",
        ],
    );
    // Queen does not have this table either.
    assert_eq!(
        super::delete(&server, "/api/v1/queues/q/clear")
            .await
            .status,
        404
    );
}
