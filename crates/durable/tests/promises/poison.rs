//! What cannot be read is set aside alone; the rest goes on.

use std::{sync::Arc, time::Duration};

use duroxide::{
    Client, ErrorDetails, OrchestrationStatus,
    providers::{ExecutionMetadata, Provider, WorkItem},
    runtime::RuntimeOptions,
};

use crate::{crew::Crew, ground::*};

#[tokio::test]
async fn a_nul_in_a_payload_goes_all_the_way() {
    const STRANGE: &str = "before\0after \u{1F980} \"\\";
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    let crew = Crew::start(&provider, RuntimeOptions::default()).await;
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
    let other = ground.other().await;
    let history = other.read("a").await.expect("it can be read");
    let history = serde_json::to_string(&history).expect("events");
    assert!(history.contains("before\\u0000after"), "{history}");
    crew.end().await;
}

#[tokio::test]
async fn names_with_a_nul_are_refused_and_the_field_is_named() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    let refused = provider
        .enqueue_for_orchestrator(start("a\0b"), None)
        .await
        .expect_err("it cannot be stored");
    assert!(
        !refused.is_retryable() && refused.message.contains("the instance's id"),
        "{refused}"
    );

    for (item, field) in [
        (activity("a\0b", 2), "the instance's id"),
        (tagged("a", 2, Some("s\0"), None), "the session's id"),
        (tagged("a", 2, None, Some("t\0")), "the tag"),
    ] {
        let refused = provider
            .enqueue_for_worker(item)
            .await
            .expect_err("it cannot be stored");
        assert!(
            !refused.is_retryable() && refused.message.contains(field),
            "{refused}"
        );
    }

    enqueue(&provider, start("a")).await;
    let (_, token, _) = fetch_now(&provider).await.expect("it was sent");
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Wo\0rk".into()),
        ..named()
    };
    let refused = provider
        .ack_orchestration_item(
            &token,
            1,
            vec![started("a")],
            vec![],
            vec![],
            metadata,
            vec![],
        )
        .await
        .expect_err("it cannot be stored");
    assert!(
        refused.message.contains("the orchestration's name"),
        "{refused}"
    );
    let turn = Turn {
        events: vec![started("a")],
        metadata: named(),
        ..Turn::default()
    };
    end_turn(&provider, &token, turn).await;
}

/// There is none of that name, and those who ask for others in the same moment get their answers.
#[tokio::test]
async fn who_asks_for_a_name_with_a_nul_spoils_nothing() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
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
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    let client = Client::new(Arc::new(provider.clone()));
    let first = Crew::start(&provider, RuntimeOptions::default()).await;
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
    let spoilt = ground
        .sql(
            "UPDATE @schema@.message SET item = 'no item' WHERE instance = 'bad' AND number =
              (SELECT min(number) FROM @schema@.message WHERE instance = 'bad') RETURNING 1",
        )
        .await;
    assert_eq!(spoilt.len(), 1);

    let crew = Crew::start(&provider, impatient()).await;
    let good = provider.wait_for_orchestration("good", POLL).await;
    assert!(
        matches!(good, Ok(OrchestrationStatus::Completed { .. })),
        "{good:?}"
    );
    let bad = provider.wait_for_orchestration("bad", POLL).await;
    assert!(
        matches!(
            &bad,
            Ok(OrchestrationStatus::Failed {
                details: ErrorDetails::Poison { .. },
                ..
            })
        ),
        "{bad:?}"
    );
    crew.end().await;
}

#[tokio::test]
async fn an_unreadable_start_does_not_stop_the_queue() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    for (instance, item) in [
        ("unheard of", r#"{"Unheard":{}}"#),
        ("bad", r#"{"StartOrchestration":7}"#),
    ] {
        enqueue(&provider, start(instance)).await;
        let spoil =
            format!("UPDATE @schema@.message SET item = '{item}' WHERE instance = '{instance}'");
        ground.sql(&spoil).await;
    }
    let client = Client::new(Arc::new(provider.clone()));
    let crew = Crew::start(&provider, impatient()).await;
    for number in 0..5 {
        let instance = number.to_string();
        let sent = client.start_orchestration(&instance, "Echo", "x").await;
        sent.expect("it can be sent");
        let ended = provider.wait_for_orchestration(&instance, POLL).await;
        assert!(
            matches!(ended, Ok(OrchestrationStatus::Completed { .. })),
            "{ended:?}"
        );
    }
    let bad = provider.wait_for_orchestration("bad", POLL).await;
    assert!(
        matches!(bad, Ok(OrchestrationStatus::Failed { .. })),
        "{bad:?}"
    );
    // What does not start anything waits for a start, whatever it is.
    let kept = "SELECT count(*) FROM @schema@.message WHERE instance = 'unheard of'";
    assert_eq!(ground.number(kept).await, 1);
    crew.end().await;
}

#[tokio::test]
async fn an_unreadable_activity_fails_alone_and_its_orchestration_is_told() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    let client = Client::new(Arc::new(provider.clone()));
    // Orchestrations only: their activities stay.
    let nobody = RuntimeOptions {
        worker_concurrency: 0,
        ..RuntimeOptions::default()
    };
    let first = Crew::start(&provider, nobody).await;
    for instance in ["bad", "good"] {
        let sent = client.start_orchestration(instance, "Echo", "x").await;
        sent.expect("it can be sent");
    }
    let tasks = "SELECT count(*) FROM @schema@.task";
    until("both want an activity", async || {
        ground.number(tasks).await == 2
    })
    .await;
    first.end().await;
    ground
        .sql("UPDATE @schema@.task SET item = '{\"ActivityExecute\":7}' WHERE instance = 'bad'")
        .await;

    let crew = Crew::start(&provider, RuntimeOptions::default()).await;
    let good = provider.wait_for_orchestration("good", POLL).await;
    assert!(
        matches!(good, Ok(OrchestrationStatus::Completed { .. })),
        "{good:?}"
    );
    let bad = provider.wait_for_orchestration("bad", POLL).await;
    assert!(
        matches!(bad, Ok(OrchestrationStatus::Failed { .. })),
        "{bad:?}"
    );
    assert_eq!(
        ground.number("SELECT count(*) FROM @schema@.spoilt").await,
        1
    );
    assert_eq!(ground.number(tasks).await, 0);
    crew.end().await;
}

/// A batch in which the database refuses one: its neighbours are written.
#[tokio::test]
async fn a_turn_that_is_refused_fails_alone() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
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
        let kind = duroxide::EventKind::OrchestrationCompleted {
            output: String::new(),
        };
        provider.ack_orchestration_item(
            token,
            1,
            vec![event(instance, number, kind)],
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
    assert_eq!(ground.number(sent).await, 19);
}
