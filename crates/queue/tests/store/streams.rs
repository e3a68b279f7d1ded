//! Stream queries, whose state and messages change together.

use uuid::Uuid;
use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    store::Store,
    stream::{RegisterResult, StateQuery, StreamRegistration},
    write_batch::{Rejection, StateChange, WriteBatch},
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{LEASE, RELEASED, ack_of, apply, from, message, names, part, push, whole_batch},
    test_store::TestStore,
};

fn query(hash: &str, reset: bool) -> StreamRegistration {
    StreamRegistration {
        name: "counts".to_owned(),
        source_queue: "q".to_owned(),
        sink_queue: Some("r".to_owned()),
        config_hash: hash.to_owned(),
        reset,
    }
}

async fn register(store: &dyn Store) -> Uuid {
    store.register(query("one", false)).done().await.id
}

fn change(stream: Uuid, partition: i64, values: &[(&str, Option<&str>)]) -> StateChange {
    let values = values.iter();
    let values = values.map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned)));
    StateChange {
        stream,
        partition,
        values: values.collect(),
    }
}

fn all_of(stream: Uuid, partition: i64) -> StateQuery {
    StateQuery {
        stream,
        partition,
        keys: Vec::new(),
        prefix: None,
        ripe_at_or_before: None,
        limit: 100,
    }
}

async fn states(store: &dyn Store, query: StateQuery) -> Vec<KeyValue> {
    let rows = store.states(query).await.unwrap().into_iter();
    rows.map(|row| KeyValue(row.key, row.value)).collect()
}

#[derive(Debug)]
struct KeyValue(String, String);

impl PartialEq<(&str, &str)> for KeyValue {
    fn eq(&self, (key, value): &(&str, &str)) -> bool {
        self.0 == *key && self.1 == *value
    }
}

async fn write(store: &dyn Store, state: StateChange) -> Option<Rejection> {
    let whole = WriteBatch {
        state: Some(state),
        ..whole_batch(vec![], vec![])
    };
    apply(store, whole).await.rejection
}

pub(crate) async fn a_stream_is_registered_once(store: TestStore) {
    let first = store.register(query("one", false)).done().await;
    assert!(first.is_new && !first.is_reset && !first.is_mismatch);
    let again = store.register(query("one", false)).done().await;
    let known = RegisterResult {
        is_new: false,
        ..first.clone()
    };
    assert_eq!(again, known);
    write(&*store, change(first.id, 1, &[("k", Some("1"))])).await;
    // Another chain of operators does not fit the state, unless it begins anew.
    let other = store.register(query("two", false)).done().await;
    assert_eq!((other.id, other.is_mismatch), (first.id, true));
    assert_eq!(states(&*store, all_of(first.id, 1)).await.len(), 1);
    let reset = store.register(query("two", true)).done().await;
    assert!(reset.is_reset && !reset.is_mismatch && !reset.is_new);
    assert!(states(&*store, all_of(first.id, 1)).await.is_empty());
    let fits = store.register(query("two", false)).done().await;
    assert!(!fits.is_mismatch);
}

pub(crate) async fn state_and_messages_change_together(store: TestStore) {
    let stream = register(&*store).await;
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    let number = part(&claimed).number;
    let lease = claimed.lease.unwrap();
    let ack = || ack_of(&claimed, "a", AckStatus::Completed);
    let cycle = |name: &str, value: &str| WriteBatch {
        required: vec![lease],
        state: Some(change(stream, number, &[("sum", Some(value))])),
        ..whole_batch(vec![ack()], vec![message("r", "p", name)])
    };
    let done = apply(&*store, cycle("x", "1")).await;
    assert_eq!((done.rejection, &*done.acked), (None, &[RELEASED][..]));
    assert_eq!(
        states(&*store, all_of(stream, number)).await,
        [("sum", "1")]
    );
    // The lease is over: the same cycle changes nothing.
    let refused = apply(&*store, cycle("y", "2")).await;
    assert_eq!(refused.rejection, Some(Rejection::Lease(lease)));
    assert_eq!(
        states(&*store, all_of(stream, number)).await,
        [("sum", "1")]
    );
    assert_eq!(names(&from("r").batch(9).claim(&*store).await), ["x"]);
}

pub(crate) async fn a_rejected_cycle_changes_no_state(store: TestStore) {
    let stream = register(&*store).await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let number = part(&claimed).number;
    store.pass(LEASE).await;
    let ack = ack_of(&claimed, "a", AckStatus::Completed);
    let cycle = WriteBatch {
        state: Some(change(stream, number, &[("sum", Some("1"))])),
        ..whole_batch(vec![ack], vec![])
    };
    let refused = apply(&*store, cycle).await.rejection;
    assert_eq!(refused, Some(Rejection::Ack(0, AckOutcome::LeaseLost)));
    assert!(states(&*store, all_of(stream, number)).await.is_empty());
    let unknown = write(&*store, change(Uuid::now_v7(), number, &[("k", Some("1"))])).await;
    assert_eq!(unknown, Some(Rejection::Stream));
}

pub(crate) async fn the_last_value_of_a_key_is_stored(store: TestStore) {
    let stream = register(&*store).await;
    let values = [
        ("a", Some("1")),
        ("b", Some("2")),
        ("a", Some("3")),
        ("b", None),
        ("c", None),
    ];
    assert_eq!(write(&*store, change(stream, 1, &values)).await, None);
    assert_eq!(states(&*store, all_of(stream, 1)).await, [("a", "3")]);
    let values = [("a", None), ("a", Some("4")), ("d", Some("5"))];
    assert_eq!(write(&*store, change(stream, 1, &values)).await, None);
    let expected = [("a", "4"), ("d", "5")];
    assert_eq!(states(&*store, all_of(stream, 1)).await, expected);
    // Another partition has a state of its own.
    assert!(states(&*store, all_of(stream, 2)).await.is_empty());
}

pub(crate) async fn states_are_found_by_key_prefix_and_window(store: TestStore) {
    let stream = register(&*store).await;
    let values = [
        ("w:1", Some(r#"{"windowEnd": 100}"#)),
        ("w:2", Some(r#"{"windowEnd": 200}"#)),
        ("w%3", Some(r#"{"windowEnd": "soon"}"#)),
        ("x", Some(r#"["\u0000"]"#)),
        ("y", Some(r#"{"windowEnd": 300, "half": "\ud800"}"#)),
    ];
    assert_eq!(write(&*store, change(stream, 1, &values)).await, None);
    let keys = async |query: StateQuery| -> Vec<String> {
        let found = states(&*store, query).await;
        found.into_iter().map(|KeyValue(key, _)| key).collect()
    };
    let all = || all_of(stream, 1);
    assert_eq!(keys(all()).await, ["w%3", "w:1", "w:2", "x", "y"]);
    let some = StateQuery {
        keys: vec!["x".to_owned(), "w:1".to_owned(), "none".to_owned()],
        ..all()
    };
    assert_eq!(keys(some).await, ["w:1", "x"]);
    let prefix = |prefix: &str| StateQuery {
        prefix: Some(prefix.to_owned()),
        ..all()
    };
    assert_eq!(keys(prefix("w:")).await, ["w:1", "w:2"]);
    assert_eq!(keys(prefix("w%")).await, ["w%3"], "no pattern");
    let ripe = StateQuery {
        ripe_at_or_before: Some(100),
        ..all()
    };
    assert_eq!(keys(ripe).await, ["w:1"]);
    let few = StateQuery { limit: 2, ..all() };
    assert_eq!(keys(few).await, ["w%3", "w:1"]);
}

pub(crate) async fn concurrent_cycles_keep_their_own_state(store: TestStore) {
    let stream = register(&*store).await;
    let writes = (0..20).map(|number| {
        let key = format!("k{number:02}");
        let store = &store;
        async move { write(&**store, change(stream, number % 2, &[(&key, Some("1"))])).await }
    });
    let refused = futures_util::future::join_all(writes).await;
    assert!(refused.iter().all(Option::is_none));
    for partition in 0..2 {
        let found = states(&*store, all_of(stream, partition)).await;
        assert_eq!(found.len(), 10);
    }
}
