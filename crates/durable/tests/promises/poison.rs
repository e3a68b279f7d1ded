//! An item that cannot be read or stored fails alone; all others go on.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client, ErrorDetails, OrchestrationStatus,
    providers::{ExecutionMetadata, Provider, ProviderError, WorkItem},
    runtime::RuntimeOptions,
};
use wakeline_durable::PostgresProvider;

use crate::{fixture::*, test_runtime::TestRuntime};

async fn completes(provider: &PostgresProvider, instance: &str) {
    let ended = provider.wait_for_orchestration(instance, POLL).await;
    let is_completed = matches!(ended, Ok(OrchestrationStatus::Completed { .. }));
    assert!(is_completed, "{ended:?}");
}

async fn fails(provider: &PostgresProvider, instance: &str) -> ErrorDetails {
    match provider.wait_for_orchestration(instance, POLL).await {
        Ok(OrchestrationStatus::Failed { details, .. }) => details,
        ended => panic!("{ended:?}"),
    }
}

/// The error names the field, and a repeat would not help.
fn is_refused<T: std::fmt::Debug>(result: Result<T, ProviderError>, field: &str) {
    let refused = result.expect_err("it cannot be stored");
    let is_named = !refused.is_retryable() && refused.message.contains(field);
    assert!(is_named, "{refused}");
}

#[tokio::test]
async fn a_nul_in_a_payload_is_delivered_unchanged() {
    const STRANGE: &str = "before\0after \u{1F980} \"\\";
    let (fixture, provider) = Fixture::with_provider().await;
    let runtime = TestRuntime::start(&provider, RuntimeOptions::default()).await;
    let client = Client::new(Arc::new(provider.clone()));
    let sent = client.start_orchestration("a", "Echo", STRANGE).await;
    sent.expect("it can be sent");
    let ended = provider.wait_for_orchestration("a", POLL).await;
    let ended = ended.expect("it ends");
    assert!(
        matches!(&ended, OrchestrationStatus::Completed { output, custom_status, .. }
            if output == STRANGE && custom_status.as_deref() == Some(STRANGE)),
        "{ended:?}"
    );
    let value = client.get_kv_value("a", "key").await;
    assert_eq!(value.expect("it can be read").as_deref(), Some(STRANGE));
    // From the database, and not from this process' memory.
    let other = fixture.direct().await;
    let history = other.read("a").await.expect("it can be read");
    let history = serde_json::to_string(&history).expect("events");
    assert!(history.contains("before\\u0000after"), "{history}");
    runtime.end().await;
}

#[tokio::test]
async fn names_with_a_nul_are_refused_and_the_field_is_named() {
    let (_fixture, provider) = Fixture::with_provider().await;
    let sent = provider.enqueue_for_orchestrator(start("a\0b"), None).await;
    is_refused(sent, "the instance's id");
    for (item, field) in [
        (activity("a\0b", 2), "the instance's id"),
        (tagged("a", 2, Some("s\0"), None), "the session's id"),
        (tagged("a", 2, None, Some("t\0")), "the tag"),
    ] {
        is_refused(provider.enqueue_for_worker(item).await, field);
    }
    enqueue(&provider, start("a")).await;
    let (_, token, _) = fetch_now(&provider).await.expect("it was sent");
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Wo\0rk".into()),
        ..named()
    };
    let events = vec![started("a")];
    let ended = provider
        .ack_orchestration_item(&token, 1, events, vec![], vec![], metadata, vec![])
        .await;
    is_refused(ended, "the orchestration's name");
    end_turn(&provider, &token, first_turn("a")).await;
}

/// No instance has that name; the other reads of the same moment get their answers.
#[tokio::test]
async fn a_read_of_a_name_with_a_nul_fails_alone() {
    let (_fixture, provider) = Fixture::with_provider().await;
    begin(&provider, "a").await;
    let reads = (0..20).map(|number| provider.read(if number % 5 == 0 { "a\0b" } else { "a" }));
    let read = futures_util::future::join_all(reads).await;
    for (number, read) in read.into_iter().enumerate() {
        if number % 5 == 0 {
            assert!(read.is_err_and(|error| !error.is_retryable()));
        } else {
            assert_eq!(read.expect("it is read").len(), 1);
        }
    }
}

/// Gives up soon, so that the test ends soon.
fn impatient() -> RuntimeOptions {
    RuntimeOptions {
        max_attempts: 2,
        orchestrator_lock_timeout: Duration::from_secs(2),
        orchestrator_lock_renewal_buffer: Duration::from_secs(1),
        ..RuntimeOptions::default()
    }
}

#[tokio::test]
async fn an_unreadable_message_stops_its_own_instance_alone() {
    let (fixture, provider) = Fixture::with_provider().await;
    let client = Client::new(Arc::new(provider.clone()));
    let first = TestRuntime::start(&provider, RuntimeOptions::default()).await;
    for instance in ["bad", "good"] {
        let sent = client.start_orchestration(instance, "Await", "").await;
        sent.expect("it can be sent");
        until("it waits for its event", async || {
            let history = provider.read(instance).await.expect("it can be read");
            history.len() >= 2
        })
        .await;
    }
    first.end().await;
    for instance in ["bad", "good", "bad"] {
        let raised = client.raise_event(instance, "go", "1").await;
        raised.expect("it can be sent");
    }
    let changed = fixture
        .sql(
            "UPDATE @schema@.message SET item = 'no item' WHERE instance = 'bad' AND number =
              (SELECT min(number) FROM @schema@.message WHERE instance = 'bad') RETURNING 1",
        )
        .await;
    assert_eq!(changed.len(), 1);

    let runtime = TestRuntime::start(&provider, impatient()).await;
    completes(&provider, "good").await;
    let details = fails(&provider, "bad").await;
    assert!(
        matches!(details, ErrorDetails::Poison { .. }),
        "{details:?}"
    );
    runtime.end().await;
}

#[tokio::test]
async fn an_unreadable_start_does_not_stop_the_queue() {
    let (fixture, provider) = Fixture::with_provider().await;
    for (instance, item) in [
        ("unheard of", r#"{"Unheard":{}}"#),
        ("bad", r#"{"StartOrchestration":7}"#),
    ] {
        enqueue(&provider, start(instance)).await;
        let spoil =
            format!("UPDATE @schema@.message SET item = '{item}' WHERE instance = '{instance}'");
        fixture.sql(&spoil).await;
    }
    let client = Client::new(Arc::new(provider.clone()));
    let runtime = TestRuntime::start(&provider, impatient()).await;
    for number in 0..5 {
        let instance = number.to_string();
        let sent = client.start_orchestration(&instance, "Echo", "x").await;
        sent.expect("it can be sent");
        completes(&provider, &instance).await;
    }
    fails(&provider, "bad").await;
    // A message that starts nothing stays until a start arrives, readable or not.
    let kept = "SELECT count(*) FROM @schema@.message WHERE instance = 'unheard of'";
    assert_eq!(fixture.number(kept).await, 1);
    runtime.end().await;
}

#[tokio::test]
async fn an_unreadable_activity_fails_alone_and_its_orchestration_gets_the_failure() {
    let (fixture, provider) = Fixture::with_provider().await;
    let client = Client::new(Arc::new(provider.clone()));
    // Runs orchestrations only, so that their activities stay.
    let without_workers = RuntimeOptions {
        worker_concurrency: 0,
        ..RuntimeOptions::default()
    };
    let first = TestRuntime::start(&provider, without_workers).await;
    for instance in ["bad", "good"] {
        let sent = client.start_orchestration(instance, "Echo", "x").await;
        sent.expect("it can be sent");
    }
    let tasks = "SELECT count(*) FROM @schema@.activity";
    until("both want an activity", async || {
        fixture.number(tasks).await == 2
    })
    .await;
    first.end().await;
    fixture
        .sql("UPDATE @schema@.activity SET item = '{\"ActivityExecute\":7}' WHERE instance = 'bad'")
        .await;

    let runtime = TestRuntime::start(&provider, RuntimeOptions::default()).await;
    completes(&provider, "good").await;
    fails(&provider, "bad").await;
    assert_eq!(
        fixture
            .number("SELECT count(*) FROM @schema@.unreadable_activity")
            .await,
        1
    );
    assert_eq!(fixture.number(tasks).await, 0);
    runtime.end().await;
}

/// The database refuses one turn of a batch; the others are written.
#[tokio::test]
async fn a_turn_that_is_refused_fails_alone() {
    let (fixture, provider) = Fixture::with_provider().await;
    let mut tokens = Vec::new();
    for number in 0..20 {
        begin(&provider, &number.to_string()).await;
    }
    for number in 0..20 {
        enqueue(&provider, timer(&number.to_string(), 2, Duration::ZERO).0).await;
    }
    while let Some((item, token, _)) = fetch_now(&provider).await {
        tokens.push((item.instance, token));
    }
    assert_eq!(tokens.len(), 20);
    let ends = tokens.iter().map(|(instance, token)| {
        // The event that there is already.
        let number = if instance == "7" { 1 } else { 2 };
        provider.ack_orchestration_item(
            token,
            1,
            vec![event(instance, number, completed(""))],
            vec![],
            vec![WorkItem::CancelInstance {
                instance: "other".into(),
                reason: instance.clone(),
            }],
            ExecutionMetadata::default(),
            vec![],
        )
    });
    let ended = futures_util::future::join_all(ends).await;
    for ((instance, _), ended) in tokens.iter().zip(ended) {
        assert_eq!(ended.is_err(), instance == "7", "{instance}: {ended:?}");
    }
    let sent = "SELECT count(*) FROM @schema@.message WHERE instance = 'other'";
    assert_eq!(fixture.number(sent).await, 19);
}
