//! The view of a schema that has more instances than one call examines.

use wakeline_durable::{
    PostgresProvider, View,
    view::{Filter, PruneCriteria, Status, ViewError},
};
use wakeline_store::postgres::{Connector, Options};
use wakeline_testkit::PostgresDatabase;

const MANY: usize = 12_000;

/// Instances that were created one after another, two at each moment. The first has failed,
/// the second is running, and every thousandth has three executions.
async fn filled() -> (PostgresDatabase, View) {
    let database = PostgresDatabase::new(&[]).await;
    let url = database.url();
    drop(PostgresProvider::connect(&url).await.unwrap());
    let connector = Connector::new(&url, &Options::default()).unwrap();
    let client = connector.connect().await.unwrap();
    client
        .batch_execute(&format!(
            "INSERT INTO durable.instance (id, incarnation, name, version, execution, created_at)
             SELECT 'i' || to_char(n, 'FM00000'), n, CASE WHEN n = 7 THEN 'Rare' ELSE 'Common' END,
                 '1.0.0', CASE WHEN n % 1000 = 0 THEN 3 ELSE 1 END,
                 timestamptz '2026-01-01' + n / 2 * interval '1 microsecond'
             FROM generate_series(1, {MANY}) n;
             INSERT INTO durable.execution (instance, number, status, completed_at)
             SELECT i.id, x, CASE WHEN i.id = 'i00001' THEN 'Failed' WHEN i.id = 'i00002' THEN 'Running'
                     WHEN x < i.execution THEN 'ContinuedAsNew' ELSE 'Completed' END,
                 CASE WHEN i.id <> 'i00002' THEN timestamptz '2026-01-02' END
             FROM durable.instance i, generate_series(1, i.execution) x;
             INSERT INTO durable.event (instance, execution, number, data)
             SELECT 'i00002', 1, n, json_build_object('event_id', n, 'text', repeat('x', 1 << 20))
             FROM generate_series(1, 10) n;
             INSERT INTO durable.event (instance, execution, number, data)
             VALUES ('i00002', 1, 11, 'no JSON');"
        ))
        .await
        .unwrap();
    let view = View::new(&url, "durable", Options::default());
    (database, view)
}

/// The ids of all pages, and the number of pages.
async fn all(view: &View, mut filter: Filter) -> (Vec<String>, usize) {
    let (mut ids, mut pages) = (Vec::new(), 0);
    loop {
        let page = view.instances(&filter).await.unwrap();
        ids.extend(page.instances.into_iter().map(|instance| instance.id));
        pages += 1;
        match page.next {
            Some(next) => filter.after = Some(next),
            None => return (ids, pages),
        }
    }
}

#[tokio::test]
async fn every_instance_is_on_exactly_one_page() {
    let (_database, view) = filled().await;
    let filter = Filter {
        limit: 999,
        ..Filter::default()
    };
    let (ids, pages) = all(&view, filter).await;
    assert_eq!(pages, 13);
    let expected: Vec<String> = (1..=MANY).rev().map(|n| format!("i{n:05}")).collect();
    assert_eq!(ids, expected);
}

#[tokio::test]
async fn a_rare_instance_is_found_however_many_pages_it_takes() {
    let (_database, view) = filled().await;
    let filter = |status, name: Option<&str>| Filter {
        status,
        name: name.map(str::to_owned),
        limit: 10,
        after: None,
    };
    let (failed, pages) = all(&view, filter(Some(Status::Failed), None)).await;
    assert_eq!(failed, ["i00001"]);
    assert_eq!(pages, 3, "a page examines a limited number");
    let (rare, _) = all(&view, filter(None, Some("Rare"))).await;
    assert_eq!(rare, ["i00007"]);
    let (running, pages) = all(&view, filter(Some(Status::Running), None)).await;
    assert_eq!(running, ["i00002"]);
    assert_eq!(pages, 1, "what runs is found at once");
    let (none, _) = all(&view, filter(Some(Status::Running), Some("Rare"))).await;
    assert!(none.is_empty());
}

#[tokio::test]
async fn a_page_of_history_has_a_limited_size() {
    let (_database, view) = filled().await;
    let (mut numbers, mut sizes, mut after) = (Vec::new(), Vec::new(), 0);
    loop {
        let page = view.history("i00002", None, after, 100).await.unwrap();
        sizes.push(page.events.len());
        numbers.extend(page.events.iter().map(|event| event.number));
        if let Some(last) = page.events.iter().find(|event| event.number == 11) {
            assert_eq!(last.unreadable.as_deref(), Some("no JSON"));
        }
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(numbers, (1..=11).collect::<Vec<u64>>());
    assert_eq!(sizes, [4, 4, 3]);
    let unknown = view.history("i00002", Some(5), 0, 100).await.unwrap_err();
    assert!(matches!(unknown, ViewError::UnknownExecution { .. }));
}

#[tokio::test]
async fn old_executions_are_found_among_many_instances() {
    let (_database, view) = filled().await;
    let found = async |criteria: PruneCriteria| {
        let (mut executions, mut examined, mut after) = (0, 0, String::new());
        loop {
            let page = view.prunable(criteria, &after).await.unwrap();
            examined += page.instances;
            executions += page.executions.iter().map(|(_, count)| count).sum::<u64>();
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        assert_eq!(examined, MANY as u64);
        executions
    };
    let keep = |keep_last| PruneCriteria {
        keep_last: Some(keep_last),
        before_ms: None,
    };
    assert_eq!(found(keep(0)).await, 24);
    assert_eq!(found(keep(1)).await, 24);
    assert_eq!(found(keep(2)).await, 12);
    assert_eq!(found(keep(3)).await, 0);
    let before = |before_ms| PruneCriteria {
        keep_last: None,
        before_ms: Some(before_ms),
    };
    assert_eq!(found(before(0)).await, 0);
    // The first of January 2027.
    assert_eq!(found(before(1_798_761_600_000)).await, 24);
}
