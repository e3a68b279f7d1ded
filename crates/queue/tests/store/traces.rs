use uuid::Uuid;
use wakeline_queue::browse::{MessageAddress, NewTrace};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{address, page, push_each},
    test_store::TestStore,
};

const EVER: i64 = 32_503_680_000_000_000;

pub(crate) async fn traces_are_found_by_message_and_by_name(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a", "b"]).await;
    let add = async |at: &MessageAddress, event: &str, names: &[&str]| {
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
        store.add_trace(trace).done().await;
        id
    };
    let (a, b) = (address(&pushed[0]), address(&pushed[1]));
    let first = add(&a, "begun", &["x", "y", "x"]).await;
    let second = add(&a, "done", &[]).await;
    let third = add(&b, "begun", &["x"]).await;

    let of_a = door.traces_of(&a).await.unwrap();
    let events = of_a.iter().map(|trace| (trace.id, &*trace.event));
    assert!(events.eq([(first, "begun"), (second, "done")]));
    assert_eq!(of_a[0].names, ["x", "y"]);
    assert_eq!(of_a[1].names, [] as [&str; 0]);
    assert_eq!(of_a[0].data, r#"{"n":12345678901234567890}"#);

    let named = async |name, page| door.traces_named(name, 0, EVER, page).await.unwrap();
    let first_page = named("x", page(1, 0)).await;
    assert_eq!((first_page.rows.len(), first_page.total), (1, 2));
    let newest = &first_page.rows[0];
    assert_eq!(newest.id, third);
    assert_eq!(newest.queue.as_deref(), Some("q"));
    assert_eq!(newest.partition_name.as_deref(), Some("p"));
    let oldest = &named("x", page(9, 1)).await.rows[0];
    assert_eq!((oldest.id, &*oldest.names), (first, &*of_a[0].names));
    assert_eq!(named("z", page(9, 0)).await.total, 0);

    let names = door.trace_names(page(1, 0)).await.unwrap();
    assert_eq!(names.total, 2);
    let x = &names.rows[0];
    assert_eq!((&*x.name, x.traces, x.messages), ("x", 2, 2));
    let names = door.trace_names(page(9, 1)).await.unwrap();
    let y = &names.rows[0];
    assert_eq!((&*y.name, y.traces, y.messages), ("y", 1, 1));
}
