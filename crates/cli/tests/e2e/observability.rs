//! What operators see: the metrics, the list of waits, the API document, the logs.

use std::fs;

use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, on_both_stores},
    metrics::Metrics,
    outline::outline,
    server::until,
};

on_both_stores! {
    metrics_count_waiters_and_the_causes_of_wakes,
}

async fn metrics_count_waiters_and_the_causes_of_wakes(fixture: Fixture) {
    let flags = ["--wake-fallback", "1h", "--wake-fallback-degraded", "1h"];
    let server = fixture.serve().flags(&flags).start().await;
    // A bus that has just connected rechecks the store, and might find the message before the wake.
    until("a bus that is up", async || {
        let ready = server.get("/readyz?verbose").await.json();
        (ready["bus"]["mode"] != "polling").then_some(())
    })
    .await;
    let read = async || {
        let answer = server.get("/metrics").await;
        assert!(answer.header("content-type").starts_with("text/plain"));
        Metrics::parse(&answer.text())
    };
    let held = server.hold("/api/v1/pop/queue/q?wait=true&timeout=60000");
    server.until_waiting(1).await;
    server.until_store_checks(1).await;
    let metrics = read().await;
    let queue = ("door", "queue");
    assert_eq!(metrics.value("wakeline_waiters", &[queue]), Some(1.0));
    assert_eq!(metrics.value("wakeline_topics", &[]), Some(1.0));

    server.push("q", json!(1)).await;
    held.await.unwrap();
    let metrics = read().await;
    let value = |name: &str, labels: &[(&str, &str)]| {
        let found = metrics.value(name, labels);
        found.unwrap_or_else(|| panic!("no {name} with {labels:?}"))
    };
    assert_eq!(value("wakeline_waiters", &[queue]), 0.0);
    assert_eq!(value("wakeline_holds_total", &[queue]), 1.0);
    assert_eq!(value("wakeline_holds_refused_total", &[queue]), 0.0);
    let woken = |cause, found| {
        value(
            "wakeline_wakes_total",
            &[queue, ("cause", cause), ("found", found)],
        )
    };
    assert_eq!(woken("notify", "yes"), 1.0, "{metrics:#?}");
    for (cause, found) in [
        ("notify", "no"),
        ("timer", "yes"),
        ("timer", "no"),
        ("fallback", "yes"),
        ("fallback", "no"),
    ] {
        assert_eq!(woken(cause, found), 0.0, "{cause} {found}");
    }
    for histogram in ["wakeline_hold_seconds", "wakeline_wake_to_answer_seconds"] {
        assert_eq!(metrics.kind(histogram), Some("histogram"));
        assert_eq!(value(&format!("{histogram}_count"), &[queue]), 1.0);
        let all = value(&format!("{histogram}_bucket"), &[queue, ("le", "+Inf")]);
        assert_eq!(all, 1.0);
    }
    assert!(value("wakeline_statements_total", &[("kind", "write")]) >= 1.0);
    assert!(value("wakeline_statements_total", &[("kind", "pop")]) >= 2.0);
    for histogram in ["wakeline_batch_size", "wakeline_commit_seconds"] {
        assert_eq!(metrics.kind(histogram), Some("histogram"));
        assert!(value(&format!("{histogram}_count"), &[]) >= 2.0);
    }
    assert_eq!(value("wakeline_bus_live", &[]), 1.0);
    let created = [("method", "POST"), ("status", "201")];
    assert_eq!(value("wakeline_http_requests_total", &created), 1.0);
    assert!(value("process_resident_memory_bytes", &[]) > 1e6);
}

#[tokio::test]
async fn a_wait_is_listed_with_its_topic_and_times() {
    let server = Fixture::sqlite().serve().start().await;
    let _late = server.hold("/api/v1/pop/queue/a%2Fb?wait=true&timeout=90000&consumerGroup=g");
    let _soon = server.hold("/api/v1/pop/queue/c/partition/p?wait=true&timeout=60000");
    server.until_waiting(2).await;
    let mut page = server.get("/v1/waits").await.json();
    for wait in page["waits"].as_array_mut().unwrap() {
        let (since, until) = (wait["since"].take(), wait["until"].take());
        assert!(since.as_str() < until.as_str(), "{since} to {until}");
    }
    insta::assert_json_snapshot!(page, @r#"
    {
      "limit": 100,
      "offset": 0,
      "total": 2,
      "waits": [
        {
          "group": "__QUEUE_MODE__",
          "since": null,
          "topics": [
            "queue/c/p"
          ],
          "until": null
        },
        {
          "group": "g",
          "since": null,
          "topics": [
            "queue/a%2Fb"
          ],
          "until": null
        }
      ]
    }
    "#);
    let second = server.get("/v1/waits?offset=1&limit=1").await.json();
    assert_eq!(second["waits"].as_array().unwrap().len(), 1);
    assert_eq!(second["waits"][0]["group"], "g");
}

#[tokio::test]
async fn the_api_document_is_as_committed() {
    let server = Fixture::sqlite().serve().start().await;
    let answer = server.get("/openapi.json").await;
    assert_eq!(answer.header("content-type"), "application/json");
    insta::assert_snapshot!("openapi", outline(&answer.json()));
}

#[tokio::test]
async fn a_log_in_json_is_one_object_per_line() {
    let flags = ["--log-format", "json", "--log-level", "debug"];
    let mut server = Fixture::sqlite().serve().flags(&flags).start().await;
    server.push("q", json!("one\ntwo")).await;
    server.signal("TERM");
    server.exit().await;
    let log = fs::read_to_string(server.log_path()).unwrap();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}")))
        .collect();
    assert!(
        lines
            .iter()
            .all(|line| line["level"].is_string() && line["timestamp"].is_string())
    );
    let stopped = lines.iter().any(|line| line["message"] == "stopped");
    assert!(stopped, "{log}");
}
