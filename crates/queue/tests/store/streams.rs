//! Stream queries: their state and their messages change together.

use uuid::Uuid;
use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    store::Store,
    stream::{RegisterResult, StateQuery, StreamRegistration},
    write_batch::{Rejection, StateChange, WriteBatch},
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{LEASE, RELEASED, apply, from, message, names, part, push, say},
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
    StateChange {
        stream,
        partition,
        values: values
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned)))
            .collect(),
    }
}

fn everything(stream: Uuid, partition: i64) -> StateQuery {
    StateQuery {
        stream,
        partition,
        keys: Vec::new(),
        prefix: None,
        ripe_at_or_before: None,
        limit: 100,
    }
}

async fn states(store: &dyn Store, query: StateQuery) -> Vec<(String, String)> {
    let rows = store.states(query).await.unwrap();
    rows.into_iter().map(|row| (row.key, row.value)).collect()
}

async fn write(store: &dyn Store, state: StateChange) -> Option<Rejection> {
    let whole = WriteBatch {
        is_whole: true,
        state: Some(state),
        ..WriteBatch::default()
    };
    apply(store, whole).await.rejection
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = expected.iter();
    owned
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
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
    assert_eq!(states(&*store, everything(first.id, 1)).await.len(), 1);
    let reset = store.register(query("two", true)).done().await;
    assert!(reset.is_reset && !reset.is_mismatch && !reset.is_new);
    assert_eq!(states(&*store, everything(first.id, 1)).await, []);
    let fits = store.register(query("two", false)).done().await;
    assert!(!fits.is_mismatch);
}

pub(crate) async fn state_and_messages_change_together(store: TestStore) {
    let stream = register(&*store).await;
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    let number = part(&claimed).number;
    let cycle = |transaction: &str, value: &str| WriteBatch {
        pushes: vec![message("r", "p", &format!("made of {transaction}"))],
        acks: vec![say(&claimed, "a", AckStatus::Completed)],
        is_whole: true,
        required: vec![claimed.lease.unwrap()],
        state: Some(change(stream, number, &[("sum", Some(value))])),
    };
    let done = apply(&*store, cycle("a", "1")).await;
    assert_eq!((done.rejection, &*done.acked), (None, &[RELEASED][..]));
    assert_eq!(
        states(&*store, everything(stream, number)).await,
        pairs(&[("sum", "1")])
    );
    // The lease is over: the same again changes nothing.
    let refused = apply(&*store, cycle("b", "2")).await;
    assert_eq!(
        refused.rejection,
        Some(Rejection::Lease(claimed.lease.unwrap()))
    );
    assert_eq!(
        states(&*store, everything(stream, number)).await,
        pairs(&[("sum", "1")])
    );
    assert_eq!(
        names(&from("r").batch(9).claim(&*store).await),
        ["made of a"]
    );
}

pub(crate) async fn a_refused_cycle_changes_no_state(store: TestStore) {
    let stream = register(&*store).await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let number = part(&claimed).number;
    store.pass(LEASE).await;
    let cycle = WriteBatch {
        acks: vec![say(&claimed, "a", AckStatus::Completed)],
        is_whole: true,
        state: Some(change(stream, number, &[("sum", Some("1"))])),
        ..WriteBatch::default()
    };
    let refused = apply(&*store, cycle).await;
    assert_eq!(
        refused.rejection,
        Some(Rejection::Ack(0, AckOutcome::LeaseLost))
    );
    assert_eq!(states(&*store, everything(stream, number)).await, []);
    let unknown = write(&*store, change(Uuid::now_v7(), number, &[("k", Some("1"))])).await;
    assert_eq!(unknown, Some(Rejection::Stream));
}

pub(crate) async fn the_last_value_of_a_key_counts(store: TestStore) {
    let stream = register(&*store).await;
    let values = [
        ("a", Some("1")),
        ("b", Some("2")),
        ("a", Some("3")),
        ("b", None),
        ("c", None),
    ];
    assert_eq!(write(&*store, change(stream, 1, &values)).await, None);
    assert_eq!(
        states(&*store, everything(stream, 1)).await,
        pairs(&[("a", "3")])
    );
    let values = [("a", None), ("a", Some("4")), ("d", Some("5"))];
    assert_eq!(write(&*store, change(stream, 1, &values)).await, None);
    assert_eq!(
        states(&*store, everything(stream, 1)).await,
        pairs(&[("a", "4"), ("d", "5")])
    );
    assert_eq!(
        states(&*store, everything(stream, 2)).await,
        [],
        "another partition's"
    );
}

pub(crate) async fn states_are_found(store: TestStore) {
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
        found.into_iter().map(|(key, _)| key).collect()
    };
    let all = || everything(stream, 1);
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

/// Two cycles of one moment, each with its own.
pub(crate) async fn cycles_beside_each_other(store: TestStore) {
    let stream = register(&*store).await;
    let writes = (0..20).map(|number| {
        let key = format!("k{number:02}");
        let store = &store;
        async move { write(&**store, change(stream, number % 2, &[(&key, Some("1"))])).await }
    });
    let refused = futures_util::future::join_all(writes).await;
    assert!(refused.iter().all(Option::is_none));
    for partition in 0..2 {
        assert_eq!(
            states(&*store, everything(stream, partition)).await.len(),
            10
        );
    }
}
