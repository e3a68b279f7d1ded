//! A write of any process wakes a dispatcher that waits.

use std::time::Duration;

use duroxide::providers::{Provider, TagFilter};
use tokio::time::timeout;
use wakeline_durable::PostgresProvider;
use wakeline_testbed::Pgbouncer;

use crate::fixture::*;

/// A dispatcher and a worker of `provider` get what `writer` writes.
async fn writes_wake(fixture: &Fixture, provider: &PostgresProvider, writer: &PostgresProvider) {
    let waiting = fixture.parked(provider, fetch(provider, LONG)).await;
    enqueue(writer, start("a")).await;
    assert_eq!(waiting.await.expect("no panic").0.instance, "a");

    let fetching = fetch_activity(provider, LONG);
    let waiting = fixture.parked(provider, fetching).await;
    schedule(writer, activity("a", 2)).await;
    assert_eq!(waiting.await.expect("no panic").0, activity("a", 2));
}

#[tokio::test]
async fn immediate_wake() {
    let (fixture, provider) = Fixture::live().await;
    writes_wake(&fixture, &provider, &provider).await;
}

#[tokio::test]
async fn a_write_by_another_process_wakes() {
    let (fixture, provider, other) = Fixture::live_pair().await;
    writes_wake(&fixture, &provider, &other).await;
}

#[tokio::test]
async fn trigger_creation_the_schema_has_no_triggers() {
    let fixture = Fixture::new().await;
    let triggers = fixture
        .sql(
            "SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal AND tgrelid::regclass::text
             NOT LIKE '%.event'",
        )
        .await;
    assert!(triggers.is_empty(), "{triggers:?}");
}

#[tokio::test]
async fn notify_emission_is_never_inside_a_write_transaction() {
    let fixture = Fixture::new().await;
    let in_functions =
        "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
         WHERE n.nspname = '@schema@' AND p.prosrc ILIKE '%notify%'";
    assert_eq!(fixture.number(in_functions).await, 0);

    let provider = fixture.proxied().await;
    let other = fixture.direct().await;
    fixture.until_live(&provider).await;
    let waiting = parked(&other, fetch(&other, LONG)).await;
    enqueue(&provider, start("a")).await;
    waiting.await.expect("it is told");

    let statements = fixture.proxy.statements();
    let is_notifying = |statement: &&String| statement.to_lowercase().contains("notify");
    let notifying: Vec<_> = statements.iter().filter(is_notifying).collect();
    assert!(!notifying.is_empty(), "somebody was told");
    for statement in notifying {
        let is_by_itself = statement.starts_with("SELECT pg_notify(") && !statement.contains(';');
        assert!(is_by_itself, "{statement}");
    }
    let begun = statements.iter().filter(|said| said.starts_with("BEGIN"));
    assert_eq!(begun.count(), 0, "each statement is its own transaction");
}

#[tokio::test]
async fn payload_parsing_a_notification_names_what_became_ready() {
    let fixture = Fixture::new().await;
    let mut line = fixture.line().await;
    let listen = line.client.batch_execute("LISTEN wakeline_durable").await;
    listen.expect("it can listen");
    let provider = fixture.proxied().await;
    // A process that is alone sends no notifications.
    let _other = fixture.direct().await;
    fixture.until_live(&provider).await;
    schedule(&provider, tagged("a", 2, None, Some("gpu"))).await;
    let named = async {
        loop {
            let said = line.notifications.recv().await.expect("the line holds");
            let payload = said.payload();
            if payload.contains("activity") && payload.contains("=gpu") && payload.contains(SCHEMA)
            {
                return;
            }
        }
    };
    timeout(POLL, named).await.expect("it was said");
}

/// One dispatcher asks for each of four items, and perhaps a late one more. Dispatchers that ask at the
/// same moment share a statement, so its size must be that of a single caller.
fn assert_one_read_for_each(fixture: &Fixture, text: &str, before: usize) {
    let sizes = fixture.proxy.sizes(text);
    let alone = sizes.iter().min().expect("somebody asked");
    let shared = sizes[before..].iter().filter(|size| *size > alone);
    assert_eq!(shared.count(), 0, "{sizes:?} after {before}");
    let asked = sizes.len() - before;
    assert!((4..=5).contains(&asked), "{asked}");
}

#[tokio::test]
async fn competing_consumer_each_item_costs_one_read() {
    let (fixture, provider) = Fixture::live().await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(fixture.parked(&provider, fetch(&provider, LONG)).await);
    }
    let before = fixture.proxy.sizes("fetch_instances").len();
    for round in 1..=4 {
        enqueue(&provider, start(&round.to_string())).await;
        until("one has it", async || provider.waiting() == 4 - round).await;
    }
    let mut instances = Vec::new();
    for one in waiting {
        instances.push(one.await.expect("no panic").0.instance);
    }
    instances.sort();
    assert_eq!(instances, ["1", "2", "3", "4"]);
    assert_one_read_for_each(&fixture, "fetch_instances", before);
}

#[tokio::test]
async fn competing_workers_each_item_costs_one_read() {
    let (fixture, provider) = Fixture::live().await;
    let mut waiting = Vec::new();
    for number in 0..4 {
        // As in the runtime, each worker is an owner of sessions of its own.
        let owner = session(&format!("worker {number}"), LONG);
        let fetching = fetch_activity_of(&provider, LONG, Some(owner), TagFilter::DefaultOnly);
        waiting.push(fixture.parked(&provider, fetching).await);
    }
    let before = fixture.proxy.sizes("fetch_activities").len();
    for round in 1..=4 {
        schedule(&provider, activity("a", round)).await;
        let left = 4 - usize::try_from(round).expect("small");
        until("one has it", async || provider.waiting() == left).await;
    }
    for one in waiting {
        one.await.expect("no panic");
    }
    assert_one_read_for_each(&fixture, "fetch_activities", before);
}

/// A write that publishes no wake.
const BY_HAND: &str = r#"SELECT @schema@.put_messages(ARRAY['a'],
    ARRAY['{"StartOrchestration":{"instance":"a","orchestration":"Work","input":"","version":"1.0.0","parent_instance":null,"parent_id":null,"execution_id":1}}'],
    ARRAY[NULL::timestamptz])"#;

#[tokio::test]
async fn fallback_without_notify() {
    let fixture = Fixture::new().await;
    let provider = fixture
        .proxied_with(with_fallback(Duration::from_secs(4)))
        .await;
    fixture.until_live(&provider).await;
    let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
    fixture.sql(BY_HAND).await;
    assert_eq!(waiting.await.expect("no panic").0.instance, "a");
}

#[tokio::test]
async fn behind_a_pooler_that_loses_notifications_work_is_found_by_polling() {
    let fixture = Fixture::new().await;
    let config: tokio_postgres::Config = fixture.database.url().parse().expect("a URL");
    let server = format!("127.0.0.1:{}", config.get_ports()[0]);
    let pooler = Pgbouncer::start(&server, "transaction").expect("a pooler");
    let url = pooler.url_for(fixture.database.name());
    let pooled = provider(&url, options()).await;
    let other = fixture.direct().await;
    let waiting = parked(&pooled, fetch(&pooled, LONG)).await;
    enqueue(&other, start("a")).await;
    let (item, token, _) = waiting.await.expect("no panic");
    assert_eq!(item.instance, "a");
    let turn = Turn {
        activities: vec![activity("a", 2)],
        ..first_turn("a")
    };
    end_turn(&pooled, &token, turn).await;
    let got = fetch_activity(&pooled, LONG).await;
    pooled
        .ack_work_item(&got.1, None)
        .await
        .expect("it is held");
}

#[tokio::test]
async fn a_client_is_woken_by_the_end_of_an_orchestration() {
    let (fixture, provider, other) = Fixture::live_pair().await;
    begin(&other, "a").await;
    let client = provider.clone();
    let waiting = fixture
        .parked(&provider, async move {
            client.wait_for_orchestration("a", POLL).await
        })
        .await;
    enqueue(&other, start("a")).await;
    let (_, token, _) = fetch_now(&other).await.expect("it was sent");
    let turn = Turn {
        events: vec![event("a", 2, completed("done"))],
        ..last_turn("a", "done")
    };
    end_turn(&other, &token, turn).await;
    let ended = waiting.await.expect("no panic").expect("it has ended");
    assert!(
        matches!(&ended, duroxide::OrchestrationStatus::Completed { output, .. } if output == "done"),
        "{ended:?}"
    );
}
