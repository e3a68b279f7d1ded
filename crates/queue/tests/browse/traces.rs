use uuid::Uuid;
use wakeline_queue::browse::{MessageAddress, NewTrace};
use wakeline_testkit::CommitAlone;

use crate::fixture::{Fixture, address, page};

const EVER: i64 = 32_503_680_000_000_000;

pub(crate) async fn traces_are_found_by_message_and_by_name(fixture: Fixture) {
    let pushed = fixture.push("q", "p", &["a", "b"]).await;
    let told = async |at: &MessageAddress, event: &str, names: &[&str]| {
        let trace = NewTrace {
            id: Uuid::now_v7(),
            partition: at.partition,
            transaction_id: at.transaction_id.clone(),
            group: "g".into(),
            event: event.into(),
            data: r#"{"n":12345678901234567890}"#.into(),
            worker: "w".into(),
            names: names.iter().map(ToString::to_string).collect(),
        };
        let id = trace.id;
        fixture.store.add_trace(trace).done().await;
        id
    };
    let (a, b) = (address(&pushed[0]), address(&pushed[1]));
    let first = told(&a, "begun", &["x", "y", "x"]).await;
    let second = told(&a, "done", &[]).await;
    let third = told(&b, "begun", &["x"]).await;

    let of_a = fixture.queue.traces_of(&a).await.unwrap();
    let shown: Vec<_> = of_a.iter().map(|trace| (trace.id, &*trace.event)).collect();
    assert_eq!(shown, [(first, "begun"), (second, "done")]);
    assert_eq!(of_a[0].names, ["x", "y"]);
    assert_eq!(of_a[1].names, [] as [&str; 0]);
    assert_eq!(of_a[0].data, r#"{"n":12345678901234567890}"#);

    let named = fixture.queue.traces_named("x", 0, EVER, page(1, 0)).await;
    let named = named.unwrap();
    assert_eq!((named.rows.len(), named.total), (1, 2));
    assert_eq!(named.rows[0].id, third);
    assert_eq!(named.rows[0].queue.as_deref(), Some("q"));
    assert_eq!(named.rows[0].partition_name.as_deref(), Some("p"));
    let next = fixture.queue.traces_named("x", 0, EVER, page(9, 1)).await;
    let next = next.unwrap();
    assert_eq!(next.rows[0].id, first);
    assert_eq!(next.rows[0].names, ["x", "y"]);
    let none = fixture.queue.traces_named("z", 0, EVER, page(9, 0)).await;
    assert_eq!(none.unwrap().total, 0);

    let names = fixture.queue.trace_names(page(1, 0)).await.unwrap();
    assert_eq!(names.total, 2);
    let x = &names.rows[0];
    assert_eq!((&*x.name, x.traces, x.messages), ("x", 2, 2));
    let names = fixture.queue.trace_names(page(9, 1)).await.unwrap();
    let y = &names.rows[0];
    assert_eq!((&*y.name, y.traces, y.messages), ("y", 1, 1));
}
