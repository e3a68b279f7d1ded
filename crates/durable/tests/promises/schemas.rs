//! Several schemas in one database, and opening and dropping providers.

use std::time::Duration;

use duroxide::providers::Provider;
use wakeline_durable::{OpenError, Options, Policy, PostgresProvider};

use crate::fixture::*;

fn of_schema(schema: &str) -> Options {
    Options {
        schema: schema.into(),
        ..options()
    }
}

/// The number of connections to the test's database, without the counting one.
async fn sessions(fixture: &Fixture, which: &str) -> i64 {
    fixture
        .number(&format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
             AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND {which}"
        ))
        .await
}

#[tokio::test]
async fn two_schemas_are_separate_and_share_one_listening_connection() {
    let fixture = Fixture::new().await;
    let mut providers = Vec::new();
    for schema in ["wakeline", "second", "third"] {
        providers.push(provider(&fixture.database.url(), of_schema(schema)).await);
    }
    providers.push(providers[0].clone());
    let [first, second, third, _] = &providers[..] else {
        unreachable!("four were made");
    };
    // A waiter in another schema is not woken instead.
    let waiting_second = parked(second, fetch(second, LONG)).await;
    let waiting_first = parked(first, fetch(first, LONG)).await;
    enqueue(first, start("a")).await;
    assert_eq!(waiting_first.await.expect("it is woken").0.instance, "a");
    assert!(fetch_now(third).await.is_none());
    enqueue(second, start("b")).await;
    assert_eq!(waiting_second.await.expect("it is woken").0.instance, "b");
    begin(third, "a").await;
    assert!(first.read("a").await.expect("it can be read").is_empty());
    assert_eq!(third.read("a").await.expect("it can be read").len(), 1);

    let listening = "query LIKE 'LISTEN%'";
    until("it listens", async || {
        sessions(&fixture, listening).await > 0
    })
    .await;
    assert_eq!(sessions(&fixture, listening).await, 1);

    drop(providers);
    until("all connections are closed", async || {
        sessions(&fixture, "true").await == 0
    })
    .await;
}

#[tokio::test]
async fn a_provider_dropped_while_a_dispatcher_waits_closes_its_connections() {
    let fixture = Fixture::new().await;
    let provider = fixture.direct().await;
    let waiting = parked(&provider, fetch(&provider, LONG)).await;
    waiting.abort();
    drop(provider);
    drop(waiting.await);
    until("all connections are closed", async || {
        sessions(&fixture, "true").await == 0
    })
    .await;
}

#[tokio::test]
async fn a_schema_opened_for_verification_only_is_not_created() {
    let fixture = Fixture::new().await;
    let url = fixture.database.url();
    let verify = || Options {
        migrations: Policy::Verify,
        ..of_schema("not there")
    };
    let refused = PostgresProvider::connect_with(&url, verify()).await;
    let refused = refused.expect_err("it is not there").to_string();
    assert!(refused.contains("not there"), "{refused}");
    let made = "SELECT count(*) FROM pg_namespace WHERE nspname = 'not there'";
    assert_eq!(fixture.number(made).await, 0);

    drop(provider(&url, of_schema("not there")).await);
    let verified = provider(&url, verify()).await;
    begin(&verified, "a").await;
}

#[tokio::test]
async fn any_name_that_postgresql_allows_is_a_schema() {
    let fixture = Fixture::new().await;
    let longest = "x".repeat(63);
    let names = [
        &*longest,
        "Capital \"and\" quoted",
        "näme; DROP --'",
        "a.b",
        "$1 @schema",
    ];
    for name in names {
        let provider = provider(&fixture.database.url(), of_schema(name)).await;
        let waiting = parked(&provider, fetch(&provider, LONG)).await;
        enqueue(&provider, start("a")).await;
        let (_, token, _) = waiting.await.expect("it is woken");
        let turn = Turn {
            activities: vec![activity("a", 2)],
            ..first_turn("a")
        };
        end_turn(&provider, &token, turn).await;
        let (_, token, _) = fetch_activity(&provider, LONG).await;
        provider.ack_work_item(&token, None).await.expect("held");
        let admin = provider.as_management_capability().expect("it can");
        let instances = admin.list_instances().await;
        assert_eq!(instances.expect("it can be listed"), ["a"]);
        let there = format!(
            "SELECT count(*) FROM pg_namespace WHERE nspname = '{}'",
            name.replace('\'', "''")
        );
        let client = fixture.client().await;
        let rows = client.query(&there, &[]).await.expect("it can be asked");
        assert_eq!(rows[0].get::<_, i64>(0), 1, "{name}");
    }
}

/// PostgreSQL would truncate the name, so that two schemas could be one.
#[tokio::test]
async fn a_schema_name_that_postgres_would_truncate_is_refused() {
    let fixture = Fixture::new().await;
    for name in ["x".repeat(64), String::new(), "a\0b".into()] {
        let opened =
            PostgresProvider::connect_with(&fixture.database.url(), of_schema(&name)).await;
        assert!(opened.is_err(), "{name:?}");
    }
}

#[tokio::test]
async fn a_failure_to_connect_names_its_cause() {
    let opened = async |url: &str| -> String {
        let options = Options {
            connect_timeout: Duration::from_secs(5),
            ..options()
        };
        let error: OpenError = PostgresProvider::connect_with(url, options)
            .await
            .expect_err("there is no such database");
        error.to_string()
    };
    let error = opened("no url at all").await;
    assert!(error.contains("invalid connection string"), "{error}");
    let port = wakeline_testbed::free_port().expect("a port");
    let error = opened(&format!("postgres://u:secret@127.0.0.1:{port}/x")).await;
    assert!(
        error.contains("refused") && !error.contains("secret"),
        "{error}"
    );
    let fixture = Fixture::new().await;
    let url = wakeline_testkit::url_for(&fixture.database.url(), "nowhere");
    let error = opened(&url).await;
    assert!(error.contains("\"nowhere\" does not exist"), "{error}");
}
