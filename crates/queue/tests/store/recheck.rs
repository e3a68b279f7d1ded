use std::time::Duration;

use wakeline_wake::WaitKey;

use crate::{
    calls::{LEASE, Request, assert_about, consume, from, push, recheck},
    test_store::TestStore,
};

/// The key where a pop of this group waits.
fn key(request: Request, group: &str) -> WaitKey {
    request.group(group).0.key()
}

const NOW: Option<Duration> = Some(Duration::ZERO);

pub(crate) async fn wait_keys_of_a_queue(store: TestStore) {
    let keys = [
        key(from("q"), "leased"),
        key(from("q"), "done"),
        key(from("q"), "behind"),
        key(from("q"), "unknown"),
        key(from("nowhere"), "leased"),
    ];
    assert_eq!(recheck(&*store, &keys).await, [None; 5]);
    push(&*store, "q", "p", &["a", "b"]).await;
    assert_eq!(recheck(&*store, &keys).await, [NOW, NOW, NOW, NOW, None]);
    from("q").group("leased").claim(&*store).await;
    consume(&*store, "q", "done", 2).await;
    consume(&*store, "q", "behind", 1).await;
    let due = recheck(&*store, &keys).await;
    assert_about(due[0], LEASE);
    assert_eq!(due[1..], [None, NOW, NOW, None]);
    store.pass(LEASE).await;
    assert_eq!(recheck(&*store, &keys).await, [NOW, None, NOW, NOW, None]);
    // A partition where the groups have no cursors.
    push(&*store, "q", "p2", &["a"]).await;
    assert_eq!(recheck(&*store, &keys).await, [NOW, NOW, NOW, NOW, None]);
}

pub(crate) async fn wait_keys_of_a_partition(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q", "p2", &["a"]).await;
    let keys = [
        key(from("q").partition("p"), "g"),
        key(from("q").partition("p2"), "g"),
        key(from("q").partition("p"), "unknown"),
        key(from("q").partition("nowhere"), "g"),
        key(from("nowhere").partition("p"), "g"),
        key(from("q"), "g"),
    ];
    let due = recheck(&*store, &keys).await;
    // An unknown group may start anywhere in a queue that exists.
    assert_eq!(due, [NOW, NOW, NOW, NOW, None, NOW]);
    from("q").partition("p").claim(&*store).await;
    let due = recheck(&*store, &keys).await;
    assert_about(due[0], LEASE);
    assert_eq!(due[1..], [NOW, NOW, None, None, NOW]);
    from("q").partition("p2").auto_ack().claim(&*store).await;
    let due = recheck(&*store, &keys).await;
    assert_eq!(due[1..5], [None, NOW, None, None]);
    push(&*store, "q", "p2", &["b"]).await;
    assert_eq!(recheck(&*store, &keys).await[1], NOW);
    store.pass(LEASE).await;
    assert_eq!(recheck(&*store, &keys).await[0], NOW);
}

pub(crate) async fn a_recheck_of_no_keys_finds_nothing(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    assert_eq!(store.recheck(Vec::new()).await.unwrap(), []);
}
