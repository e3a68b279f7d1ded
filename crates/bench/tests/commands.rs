//! `wakeline-bench queue`, `verify` and `durable` with servers of their own, as short as they can be.
//! The server is the program beside `wakeline-bench`: cargo builds it for its own tests.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use wakeline_testbed::{Process, free_port};

/// Runs it to its end, off the test's own thread.
async fn bench(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wakeline-bench"));
    command.args(line.split(' ')).stdin(Stdio::null());
    let run = tokio::task::spawn_blocking(move || command.output());
    run.await.unwrap().expect("the command runs")
}

/// The report of a run that went well.
async fn report(line: &str) -> Value {
    let output = bench(&format!("{line} --json")).await;
    let printed = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}\n{printed}\n{log}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn value(report: &Value, name: &str) -> f64 {
    let mut rows = report["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == name);
    let row = row.unwrap_or_else(|| panic!("no row {name} in {report:#}"));
    row["values"][0].as_f64().unwrap()
}

const SHORT_QUEUE: &str = "queue --connections 4 --partitions 4 --batches 1,10 --seconds 500ms \
                           --wakes 3 --idle 300ms --many-partitions 50 --groups 2";

fn queue_was_measured(report: &Value) {
    let value = |name: &str| value(report, name);
    assert!(value("drain, batch 1") > 0.0);
    assert!(value("drain, batch 10") > 0.0);
    assert!(value("50 partitions, one message each, drain") > 0.0);
    assert!(value("50 partitions, one is ready, pop p50") > 0.0);
    assert!(value("fan-out to 2 groups, batch 10") > 0.0);
    assert!(value("wake p99, from push sent") > 0.0);
    assert!(value("wake max, from push answered") >= 0.0);
    assert!(value("push, batch 1") >= 0.0);
    assert!(value("idle, 100 waiters on 100 queues") >= 0.0);
    assert_eq!(report["failures"][0]["count"], 0);
}

#[tokio::test]
async fn queue_measures_a_server_that_it_starts_on_sqlite() {
    queue_was_measured(&report(SHORT_QUEUE).await);
}

#[tokio::test]
async fn queue_measures_a_server_that_it_starts_on_postgres() {
    queue_was_measured(&report(&format!("{SHORT_QUEUE} --store postgres")).await);
}

#[tokio::test]
async fn queue_measures_a_server_by_its_url_and_fails_when_requests_do() {
    let dir = TempDir::new().unwrap();
    let (port, log) = (free_port().unwrap(), dir.path().join("log"));
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_wakeline-bench"));
    let mut serve = Command::new(program.with_file_name("wakeline"));
    serve
        .args(["serve", "--auth-tokens", "a-token-for-the-test"])
        .arg(format!("--listen=127.0.0.1:{port}"))
        .arg(format!("--data={}", dir.path().join("data").display()));
    let mut server = Process::start("wakeline", serve, &log, |_| {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("listening on"))
    })
    .unwrap();
    let line = format!(
        "queue --url http://127.0.0.1:{port} --connections 2 --batches 1 --seconds 300ms \
         --only push,wake --wakes 2"
    );
    let measured = report(&format!("{line} --token a-token-for-the-test")).await;
    assert_eq!(measured["failures"][0]["count"], 0);

    let refused = bench(&line).await;
    assert!(!refused.status.success());
    let log = String::from_utf8_lossy(&refused.stderr);
    assert!(
        log.contains("requests failed at http://127.0.0.1:"),
        "{log}"
    );
    assert!(log.contains("401 Unauthorized"), "{log}");
    server.end("TERM").unwrap();
}

fn promises_were_kept(report: &Value, faults: &[&str]) {
    assert_eq!(report["seed"], 7);
    assert_eq!(report["violations"], serde_json::json!({}));
    // The command itself fails when too little happened; these are the faults.
    for fault in faults {
        assert_eq!(report["happened"][fault], 1, "{fault}: {report:#}");
    }
}

#[tokio::test]
async fn verify_proves_the_promises_on_sqlite() {
    let report = report("verify --minutes 0.12 --seed 7").await;
    promises_were_kept(&report, &["nodes killed", "lease storms"]);
}

#[tokio::test]
async fn verify_proves_the_promises_with_two_nodes_on_postgres() {
    let report = report("verify --minutes 0.15 --seed 7 --store postgres --nodes 2").await;
    promises_were_kept(&report, &["nodes killed", "lease storms", "listeners cut"]);
}

#[tokio::test]
async fn durable_measures_the_provider_and_every_orchestration_completes() {
    let report =
        report("durable --idle 500ms --workflows 2 --timers 3 --seconds 500ms --in-flight 4").await;
    assert_eq!(report["providers"], serde_json::json!(["wakeline-durable"]));
    assert_eq!(report["failures"][0]["count"], 0);
    let value = |name: &str| value(&report, name);
    assert!(value("  idle, transactions") >= 0.0);
    assert!(value("one activity, to its last turn, p50") > 0.0);
    assert!(value("one activity, as a polling client sees it, p50") > 0.0);
    assert!(value("  one activity, as a woken caller sees it, p99") > 0.0);
    assert!(value("pick-up of an orchestration, p50") >= 0.0);
    assert!(value("  pick-up of an activity, p99") >= 0.0);
    assert!(value("  timer lateness, p99") >= 0.0);
    for phase in ["stress", "fan-out"] {
        // One for each that was in flight at the least.
        assert!(value(&format!("  {phase}, completed")) >= 4.0);
        assert!(value(phase) > 0.0);
        assert!(value(&format!("  {phase}, write-ahead log per orchestration")) > 0.0);
    }
}

#[tokio::test]
async fn durable_names_the_command_that_measures_the_missing_peers() {
    let refused = bench("durable --peers duroxide-pg").await;
    assert!(!refused.status.success());
    let log = String::from_utf8_lossy(&refused.stderr);
    assert!(log.contains("--manifest-path peers/Cargo.toml"), "{log}");
}
