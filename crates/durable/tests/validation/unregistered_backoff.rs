//! duroxide's `race_replay::test_continue_as_new_unregistered_backoff` with another check that the
//! start is delayed. The original makes an empty fetch and then stops the runtime. But the runtime may
//! have just leased the start: then the fetch is empty because of the lease, and the start is released
//! when the runtime drops its fetch. One run in fifty failed so.

use std::time::Duration;

use duroxide::{
    Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    provider_validation::ProviderFactory,
    providers::{ExecutionMetadata, Provider, WorkItem},
    runtime::{Runtime, RuntimeOptions, UnregisteredBackoffConfig, registry::ActivityRegistry},
};

use crate::factory::Factory;

const INSTANCE: &str = "provider-can-unregistered-backoff";
const NAME: &str = "RollingSuccessor";
const VERSION: &str = "1.0.0";
/// Longer than it takes to stop a runtime and to fetch once.
const BACKOFF: Duration = Duration::from_secs(4);
/// Only a hang takes longer.
const WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn woken() {
    a_successor_orchestration_survives_a_node_that_has_not_registered_it(Factory::woken().await)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polling() {
    a_successor_orchestration_survives_a_node_that_has_not_registered_it(Factory::polling().await)
        .await;
}

async fn a_successor_orchestration_survives_a_node_that_has_not_registered_it(factory: Factory) {
    let provider = factory.create_provider().await;
    continue_as_new(&*provider).await;

    let backoff = UnregisteredBackoffConfig {
        base_delay: BACKOFF,
        max_delay: BACKOFF,
    };
    let old = Runtime::start_with_options(
        provider.clone(),
        ActivityRegistry::builder().build(),
        OrchestrationRegistry::builder().build(),
        RuntimeOptions {
            orchestration_concurrency: 1,
            unregistered_backoff: backoff,
            ..soon()
        },
    )
    .await;
    factory.until_delayed(INSTANCE, WITHIN).await;
    old.shutdown(None).await;
    assert!(
        fetch(&*provider).await.is_none(),
        "delayed by the backoff, not merely locked"
    );
    let read = provider.read_with_execution(INSTANCE, 1).await;
    assert_eq!(read.expect("the predecessor's history").len(), 2);

    let client = Client::new(provider.clone());
    let sent = client.enqueue_event(INSTANCE, "q", "late").await;
    sent.expect("input while the successor is delayed");
    let known = OrchestrationRegistry::builder()
        .register(
            NAME,
            |context: OrchestrationContext, _: String| async move {
                assert_eq!(context.execution_id(), 2);
                let first = context.dequeue_event("q").await;
                let second = context.dequeue_event("q").await;
                Ok(format!("{first},{second}"))
            },
        )
        .build();
    let activities = ActivityRegistry::builder().build();
    let new = Runtime::start_with_options(provider, activities, known, soon()).await;
    let ended = client.wait_for_orchestration(INSTANCE, WITHIN).await;
    new.shutdown(None).await;
    match ended.expect("the successor ends") {
        OrchestrationStatus::Completed { output, .. } => assert_eq!(output, "carried,late"),
        other => panic!("{other:?}"),
    }
}

fn soon() -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_min_poll_interval: Duration::from_millis(10),
        ..RuntimeOptions::default()
    }
}

/// Ends the first execution of an instance; the second is to be started.
async fn continue_as_new(provider: &dyn Provider) {
    let start = WorkItem::StartOrchestration {
        instance: INSTANCE.into(),
        orchestration: NAME.into(),
        input: "old".into(),
        version: Some(VERSION.into()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    let sent = provider.enqueue_for_orchestrator(start, None).await;
    sent.expect("a start");
    let lock = fetch(provider).await.expect("it can be fetched");
    let event = |number, kind| Event::with_event_id(number, INSTANCE, 1, None, kind);
    let started = EventKind::OrchestrationStarted {
        name: NAME.into(),
        version: VERSION.into(),
        input: "old".into(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let continued = EventKind::OrchestrationContinuedAsNew {
        input: "next".into(),
    };
    let successor = WorkItem::ContinueAsNew {
        instance: INSTANCE.into(),
        orchestration: NAME.into(),
        input: "next".into(),
        version: Some(VERSION.into()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: vec![("q".into(), "carried".into())],
        initial_custom_status: None,
    };
    let metadata = ExecutionMetadata {
        status: Some("ContinuedAsNew".into()),
        ..ExecutionMetadata::default()
    };
    let events = vec![event(1, started), event(2, continued)];
    let ended = provider
        .ack_orchestration_item(&lock, 1, events, vec![], vec![successor], metadata, vec![])
        .await;
    ended.expect("its end and its successor, in one step");
}

async fn fetch(provider: &dyn Provider) -> Option<String> {
    let fetched = provider
        .fetch_orchestration_item(Duration::from_secs(30), Duration::ZERO, None)
        .await;
    fetched.expect("it can be fetched").map(|(_, lock, _)| lock)
}
