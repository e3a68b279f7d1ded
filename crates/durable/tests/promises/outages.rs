//! PostgreSQL stops while a runtime works: no orchestration fails.

use std::time::{Duration, Instant};

use duroxide::{providers::Provider, runtime::RuntimeOptions};
use tokio::time::sleep;
use wakeline_testbed::Postgres;

use crate::{
    fixture::*,
    test_runtime::{TestRuntime, all_add_up, start_sums},
};

const MANY: usize = 100;
/// How long all of them may take: only a hang takes longer.
const WITHIN: Duration = Duration::from_secs(120);

/// With short leases: an item whose connection was lost is fetched again when its lease expires.
fn short_leases() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        worker_lock_timeout: Duration::from_secs(5),
        worker_lock_renewal_buffer: Duration::from_secs(2),
        ..RuntimeOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_orchestration_fails_when_backends_are_killed_repeatedly() {
    let server = Postgres::start().expect("a server");
    let fixture = Fixture::on(&server.url()).await;
    let provider = fixture.direct().await;
    let runtime = TestRuntime::start(&provider, short_leases()).await;
    let url = fixture.database.url();
    let starting = provider.clone();
    let starting = tokio::spawn(async move { start_sums(&starting, 0..MANY).await });
    let kill = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = '{}' AND pid <> pg_backend_pid()",
        fixture.database.name()
    );
    let began = Instant::now();
    let mut killed = 0;
    while began.elapsed() < Duration::from_secs(5) {
        sleep(Duration::from_millis(200)).await;
        killed += fixture.sql(&kill).await.len();
    }
    assert!(killed > 20, "{killed} in {url}");
    starting.await.expect("all were sent");
    all_add_up(&provider, MANY, WITHIN).await;
    runtime.end().await;
}

async fn no_orchestration_fails_across(end: fn(&mut Postgres) -> anyhow::Result<()>) {
    let mut server = Postgres::start().expect("a server");
    let fixture = Fixture::on(&server.url()).await;
    let provider = fixture.direct().await;
    let runtime = TestRuntime::start(&provider, short_leases()).await;
    // Some may be done when the server ends; others are sent while it is gone.
    start_sums(&provider, 0..MANY / 2).await;
    for sent in [MANY / 2..MANY * 3 / 4, MANY * 3 / 4..MANY] {
        tokio::task::block_in_place(|| end(&mut server)).expect("it ends");
        let sending = provider.clone();
        let sending = tokio::spawn(async move { start_sums(&sending, sent).await });
        sleep(Duration::from_millis(500)).await;
        assert!(!sending.is_finished(), "there is no server");
        tokio::task::block_in_place(|| server.start_again()).expect("it starts");
        sending.await.expect("all were sent");
    }
    all_add_up(&provider, MANY, WITHIN).await;
    runtime.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_orchestration_fails_across_a_restart_of_postgres() {
    no_orchestration_fails_across(Postgres::stop).await;
}

/// Loses the commits that did not wait for the disk, which are leases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_orchestration_fails_across_a_crash_of_postgres() {
    no_orchestration_fails_across(Postgres::crash).await;
}

/// Longer than the runtime's own patience: the acknowledgement waits for the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledgement_outlasts_an_outage() {
    let mut server = Postgres::start().expect("a server");
    let fixture = Fixture::on(&server.url()).await;
    let provider = fixture.direct().await;
    enqueue(&provider, start("a")).await;
    let (_, token, _) = fetch_now(&provider).await.expect("it was sent");
    tokio::task::block_in_place(|| server.stop()).expect("it ends");
    let (ending, ending_token) = (provider.clone(), token.clone());
    let end = tokio::spawn(async move {
        end_turn(&ending, &ending_token, first_turn("a")).await;
    });
    sleep(Duration::from_secs(2)).await;
    assert!(!end.is_finished(), "an error would fail the orchestration");
    tokio::task::block_in_place(|| server.start_again()).expect("it starts");
    end.await.expect("it is done");
    assert_eq!(provider.read("a").await.expect("it is read").len(), 1);
}

#[tokio::test]
async fn a_client_waits_no_longer_than_its_timeout() {
    let server = Postgres::start().expect("a server");
    let fixture = Fixture::on(&server.url()).await;
    let provider = fixture.proxied().await;
    begin(&provider, "a").await;
    assert_eq!(provider.read("a").await.expect("it is read").len(), 1);
    fixture.proxy.pause_answers();
    let waiting = provider.wait_for_orchestration("a", Duration::from_secs(1));
    let ended = tokio::time::timeout(POLL / 2, waiting).await;
    fixture.proxy.resume_answers();
    let ended = ended.expect("its time is over");
    assert!(
        matches!(ended, Err(duroxide::ClientError::Timeout)),
        "{ended:?}"
    );
}

/// The database refuses now what it may accept later: none of these errors is permanent.
#[tokio::test]
async fn every_failure_of_the_database_itself_is_a_retryable_error() {
    let server = Postgres::start().expect("a server");
    let fixture = Fixture::on(&server.url()).await;
    let brief = wakeline_durable::Options {
        outage_patience: Duration::from_millis(1),
        statement_timeout: Duration::from_secs(1),
        ..options()
    };
    let provider = fixture.proxied_with(brief).await;
    begin(&provider, "a").await;
    // A lock that is held for too long.
    let somebody = fixture.client().await;
    let locked = somebody
        .batch_execute(&format!(
            "BEGIN; LOCK TABLE {SCHEMA}.message, {SCHEMA}.activity, {SCHEMA}.mailbox"
        ))
        .await;
    locked.expect("it can be locked");
    let sent = provider.enqueue_for_orchestrator(start("b"), None).await;
    let error = sent.expect_err("it is locked");
    assert!(error.is_retryable(), "{error}");
    let fetched = provider
        .fetch_orchestration_item(LONG, Duration::ZERO, None)
        .await;
    let error = fetched.expect_err("it is locked");
    assert!(error.is_retryable(), "{error}");
    somebody.batch_execute("ROLLBACK").await.expect("unlocked");

    // A server that takes no new connections.
    let name = fixture.database.name();
    fixture.proxy.cut();
    let admin_url = server.url();
    let allow = |yes: bool| format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {yes}");
    wakeline_testbed::psql(&admin_url, &allow(false)).expect("it can be closed");
    let sent = provider.enqueue_for_orchestrator(start("b"), None).await;
    let error = sent.expect_err("nobody is let in");
    assert!(error.is_retryable(), "{error}");
    wakeline_testbed::psql(&admin_url, &allow(true)).expect("it can be opened");
    until("it is let in", async || {
        let sent = provider.enqueue_for_orchestrator(start("b"), None).await;
        sent.is_ok()
    })
    .await;
}
