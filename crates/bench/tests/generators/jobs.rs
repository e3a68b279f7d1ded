//! `bench jobs`.

use std::sync::atomic::Ordering;

use super::bench;
use super::fake_jobs::FakeJobsServer;

const SHORT: &str = "--cold 5 --connections 1,4 --bodies 200,5000 --seconds 100ms --held 50 \
                     --workers 1,3 --tasks 20 --wakes 3 --idle 200ms";

async fn jobs(server: &FakeJobsServer, more: &str) -> anyhow::Result<()> {
    let peer = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generators/peer");
    let url = &server.url;
    bench(&format!("jobs --url {url} --peer {peer} {SHORT} {more}")).await
}

fn unfinished(server: &FakeJobsServer) -> usize {
    let tasks = server.state.tasks.lock().unwrap();
    assert!(!tasks.is_empty());
    tasks
        .iter()
        .filter(|task| task["status"] != "completed")
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_phases_leave_no_task_undone_no_read_unanswered_and_no_worker_behind() {
    let server = FakeJobsServer::start().await;
    jobs(&server, "--json").await.unwrap();
    let state = &server.state;
    assert_eq!(unfinished(&server), 0);
    assert!(state.workers.lock().unwrap().is_empty());
    // 50 reads and as many claims, while it is idle.
    assert_eq!(state.held.most(), 100);
    let results = state.results.lock().unwrap();
    let of = |room: &str| {
        results
            .keys()
            .filter(|(name, _)| name.contains(room))
            .count()
    };
    // One is the warm reads'.
    assert_eq!(of("-held-distinct:"), 51);
    assert_eq!(of("-held-identical:"), 2);
    assert_eq!(of("-warm-5000:"), 1);
    // Those that are not counted too.
    assert!(of("-cold:bench:python") > 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_claims_are_not_measured_on_a_server_without_them() {
    let server = FakeJobsServer::start().await;
    server.state.holds_no_claims.store(true, Ordering::SeqCst);
    jobs(&server, "--only tasks,idle").await.unwrap();
    assert_eq!(unfinished(&server), 0);
    assert_eq!(server.state.held_claims.load(Ordering::SeqCst), 0);
    assert_eq!(server.state.held.most(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_requested_phases_are_measured() {
    let server = FakeJobsServer::start().await;
    jobs(&server, "--only warm").await.unwrap();
    assert_eq!(server.state.results.lock().unwrap().len(), 2);
    assert!(server.state.tasks.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_fails_is_an_error() {
    let server = FakeJobsServer::start().await;
    server.state.refuses_changes.store(true, Ordering::SeqCst);
    let error = jobs(&server, "--only wake").await.unwrap_err().to_string();
    assert!(error.starts_with("4 requests failed at http://"), "{error}");
    assert!(
        error.contains("409") && error.contains("not now"),
        "{error}"
    );
}
