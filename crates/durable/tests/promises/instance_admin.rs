//! Changes that an operator makes without a runtime, and their effect on runtimes of other
//! processes.

use std::sync::Arc;

use duroxide::{
    AppErrorKind, Client, ErrorDetails, OrchestrationStatus, providers::WorkItem,
    runtime::RuntimeOptions,
};
use wakeline_durable::{
    InstanceAdmin,
    admin::{AdminError, DeletedCounts},
    view::PruneCriteria,
};
use wakeline_store::postgres::Options;

use crate::{fixture::*, test_runtime::TestRuntime};

async fn admin(fixture: &Fixture) -> InstanceAdmin {
    let (url, pool) = (fixture.database.url(), Options::default());
    let connected = InstanceAdmin::connect(&url, SCHEMA, &pool).await;
    connected.expect("the schema is there")
}

#[tokio::test]
async fn a_cancellation_is_stored_as_the_runtime_stores_it() {
    let fixture = Fixture::new().await;
    let instance = "order \"7\" ü";
    let reason = "he said \"no\",\\\n\u{0}é";
    let client = Client::new(Arc::new(fixture.direct().await));
    let sent = client.cancel_instance(instance, reason).await;
    sent.expect("it can be sent");
    let admin = admin(&fixture).await;
    let sent = admin.cancel(instance, reason).await;
    sent.expect("it can be sent");

    let messages = fixture
        .sql("SELECT instance, item, visible_at IS NULL AS is_visible FROM @schema@.message ORDER BY number")
        .await;
    let messages: Vec<(String, String, bool)> = messages
        .iter()
        .map(|row| (row.get("instance"), row.get("item"), row.get("is_visible")))
        .collect();
    let [of_runtime, of_admin] = &messages[..] else {
        panic!("{messages:?}");
    };
    assert_eq!(of_admin, of_runtime);
    let item: WorkItem = serde_json::from_str(&of_admin.1).expect("it can be read");
    let cancel = WorkItem::CancelInstance {
        instance: instance.into(),
        reason: reason.into(),
    };
    assert_eq!(item, cancel);
}

#[tokio::test]
async fn a_cancellation_wakes_a_dispatcher_of_another_process() {
    let (fixture, provider) = Fixture::with_provider().await;
    let admin = admin(&fixture).await;
    begin(&provider, "a").await;
    fixture.until_live(&provider).await;
    let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
    admin.cancel("a", "no").await.expect("it can be sent");
    let (item, ..) = waiting.await.expect("no panic");
    let cancel = WorkItem::CancelInstance {
        instance: "a".into(),
        reason: "no".into(),
    };
    assert_eq!(item.messages, [cancel]);
}

#[tokio::test]
async fn a_runtime_ends_an_instance_that_is_cancelled() {
    let fixture = Fixture::new().await;
    let provider = fixture.direct().await;
    let runtime = TestRuntime::start(&provider, RuntimeOptions::default()).await;
    let client = Client::new(Arc::new(provider.clone()));
    let started = client.start_orchestration("a", "Await", "").await;
    started.expect("it can be sent");
    until("it runs", async || {
        let status = client.get_orchestration_status("a").await;
        matches!(status, Ok(OrchestrationStatus::Running { .. }))
    })
    .await;
    let admin = admin(&fixture).await;
    let sent = admin.cancel("a", "the customer left").await;
    sent.expect("it can be sent");
    let ended = provider.wait_for_orchestration("a", POLL).await;
    let ended = ended.expect("it ends");
    let OrchestrationStatus::Failed { details, .. } = &ended else {
        panic!("{ended:?}");
    };
    let ErrorDetails::Application {
        kind: AppErrorKind::Cancelled { reason },
        ..
    } = details
    else {
        panic!("{details:?}");
    };
    assert_eq!(reason, "the customer left");
    runtime.end().await;
}

#[tokio::test]
async fn an_instance_is_deleted_with_its_descendants_or_not_at_all() {
    let fixture = Fixture::new().await;
    let provider = fixture.direct().await;
    let mut parent = None;
    for instance in ["root", "child", "grandchild", "other"] {
        enqueue(&provider, start(instance)).await;
        let (_, token, _) = fetch_now(&provider).await.expect("it was sent");
        let mut turn = if instance == "grandchild" {
            first_turn(instance)
        } else {
            last_turn(instance, "done")
        };
        turn.metadata.parent_instance_id = parent.filter(|_| instance != "other");
        end_turn(&provider, &token, turn).await;
        parent = Some(instance.to_owned());
    }
    enqueue(&provider, start("child")).await;

    let admin = admin(&fixture).await;
    let unknown = AdminError::UnknownInstance("nobody".into());
    assert_eq!(admin.delete("nobody", true).await, Err(unknown.clone()));
    let criteria = PruneCriteria::default();
    assert_eq!(admin.prune("nobody", criteria).await, Err(unknown));
    let child = AdminError::SubOrchestration {
        instance: "child".into(),
        parent: "root".into(),
    };
    assert_eq!(admin.delete("child", true).await, Err(child));
    let running = AdminError::Running("grandchild".into());
    assert_eq!(admin.delete("root", false).await, Err(running));
    let count = "SELECT count(*) FROM @schema@.instance";
    assert_eq!(fixture.number(count).await, 4);

    let deleted = DeletedCounts {
        instances: 3,
        executions: 3,
        events: 5,
        queued: 1,
    };
    assert_eq!(admin.delete("root", true).await, Ok(deleted));
    assert_eq!(fixture.number(count).await, 1);
    let ids = ["other".to_owned(), "nobody".to_owned()];
    let deleted = admin.delete_ended(&ids, 0).await;
    assert_eq!(deleted, Ok(DeletedCounts::default()));
    let deleted = admin.delete_ended(&ids, now_ms() + 60_000).await;
    assert_eq!(deleted.expect("it can be deleted").instances, 1);
    assert_eq!(fixture.number(count).await, 0);
}
