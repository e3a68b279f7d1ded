//! A write commits and wakes although its caller hangs up meanwhile. Nothing else wakes the waiters
//! here: the fallback runs once an hour.

use uuid::Uuid;
use wakeline_queue::{
    browse::MessageAddress,
    claim::Claim,
    queue_admin::{ConfigureRequest, Seek},
    store::Store,
};
use wakeline_testkit::eventually;

use crate::{
    calls::{
        HOUR_MS, RELEASED, Request, configuration, configure, fail, from, make_dead, message,
        names, of, part, push, scope,
    },
    test_door::{TestDoor, taken},
    test_store::TestStore,
};

async fn open(store: &TestStore) -> TestDoor {
    let door = TestDoor::open(store).await;
    door.recheck_on_request();
    door
}

/// Drops `write` while its commit is blocked, then lets the commit go on.
async fn hang_up<T: Send + 'static>(
    store: &TestStore,
    door: &TestDoor,
    write: impl Future<Output = T> + Send + 'static,
) {
    let blocker = store.block_all_writes().await;
    let before = door.writes();
    let write = tokio::spawn(write);
    eventually("the write to be blocked", async || {
        door.writes() > before && store.database.is_write_blocked().await
    })
    .await;
    write.abort();
    assert!(write.await.is_err_and(|error| error.is_cancelled()));
    blocker.release().await;
}

/// Two waiting pops: of the whole queue, and of its partition only.
fn waiters() -> [Request; 2] {
    [from("q"), from("q").partition("p")]
}

/// Lets the group consume message `a`, the only one.
async fn consume_everything(store: &dyn Store) {
    push(store, "q", "p", &["a"]).await;
    from("q").auto_ack().claim(store).await;
}

pub(crate) async fn a_push_wakes(store: TestStore) {
    for (number, request) in waiters().into_iter().enumerate() {
        let door = open(&store).await;
        let waiting = door.parked(request.auto_ack()).await;
        let (queue, name) = (door.queue.clone(), number.to_string());
        let sent = vec![message("q", "p", &name)];
        hang_up(&store, &door, async move { queue.push(sent).await }).await;
        assert_eq!(names(&taken(waiting).await), [name]);
    }
}

pub(crate) async fn a_seek_wakes(store: TestStore) {
    let door = open(&store).await;
    consume_everything(&*store).await;
    for request in waiters() {
        for scope in [scope(Some("q"), None), scope(Some("q"), Some("p"))] {
            let waiting = door.parked(request.clone().auto_ack()).await;
            let queue = door.queue.clone();
            let seek = async move { queue.seek(scope, Seek::At(0)).await };
            hang_up(&store, &door, seek).await;
            assert_eq!(names(&taken(waiting).await), ["a"]);
        }
    }
}

pub(crate) async fn a_shorter_delay_wakes(store: TestStore) {
    let door = open(&store).await;
    for (number, request) in waiters().into_iter().enumerate() {
        configure(&*store, "q", |options| options.delay_ms = HOUR_MS).await;
        let name = number.to_string();
        push(&*store, "q", "p", &[&name]).await;
        let waiting = door.parked(request.auto_ack()).await;
        let (queue, new) = (door.queue.clone(), configuration("q", |_| {}));
        hang_up(&store, &door, async move { queue.configure(new).await }).await;
        assert_eq!(names(&taken(waiting).await), [name]);
    }
}

pub(crate) async fn another_namespace_wakes(store: TestStore) {
    let door = open(&store).await;
    push(&*store, "q", "p", &["a"]).await;
    let waiting = door.parked(of(Some("shop"), None)).await;
    let (queue, new) = (door.queue.clone(), in_namespace("shop"));
    hang_up(&store, &door, async move { queue.configure(new).await }).await;
    assert_eq!(names(&taken(waiting).await), ["a"]);
}

/// Queue `q` in this namespace, with the default options.
fn in_namespace(namespace: &str) -> ConfigureRequest {
    ConfigureRequest {
        namespace: Some(namespace.to_owned()),
        ..configuration("q", |_| {})
    }
}

pub(crate) async fn deleting_a_group_wakes(store: TestStore) {
    let door = open(&store).await;
    consume_everything(&*store).await;
    for request in waiters() {
        let waiting = door.parked(request.auto_ack()).await;
        let queue = door.queue.clone();
        let delete = async move { queue.delete_group(scope(Some("q"), None), false).await };
        hang_up(&store, &door, delete).await;
        assert_eq!(names(&taken(waiting).await), ["a"]);
    }
}

pub(crate) async fn the_end_of_a_pause_wakes(store: TestStore) {
    for request in waiters() {
        let door = open(&store).await;
        door.queue.pause_pops(true).await.unwrap();
        push(&*store, "q", "p", &[&Uuid::new_v4().to_string()]).await;
        let waiting = door.parked(request.auto_ack()).await;
        let queue = door.queue.clone();
        hang_up(&store, &door, async move { queue.pause_pops(false).await }).await;
        assert_eq!(names(&taken(waiting).await).len(), 1);
    }
}

fn claimed_address(claimed: &Claim) -> MessageAddress {
    MessageAddress {
        partition: part(claimed).number,
        transaction_id: names(claimed)[0].to_owned(),
    }
}

pub(crate) async fn a_retry_wakes(store: TestStore) {
    let door = open(&store).await;
    for request in waiters() {
        let name = Uuid::new_v4().to_string();
        push(&*store, "q", "p", &[&name]).await;
        let claimed = from("q").claim(&*store).await;
        make_dead(&*store, &claimed, &name).await;
        let waiting = door.parked(request.auto_ack()).await;
        let (queue, address) = (door.queue.clone(), claimed_address(&claimed));
        hang_up(&store, &door, async move { queue.retry(&address).await }).await;
        assert_eq!(names(&taken(waiting).await), [name]);
    }
}

/// Message `a` has failed and is tried again after an hour, which holds up `b` too.
async fn with_a_message_that_holds_up_another(store: &dyn Store) -> Claim {
    configure(store, "q", |options| options.retry_delay_ms = HOUR_MS).await;
    push(store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(store).await;
    assert_eq!(fail(store, &claimed, "a").await, RELEASED);
    claimed
}

pub(crate) async fn moving_a_message_to_the_dead_letters_wakes_for_the_next_one(store: TestStore) {
    let door = open(&store).await;
    let claimed = with_a_message_that_holds_up_another(&*store).await;
    let waiting = door.parked(from("q").partition("p")).await;
    let (queue, address) = (door.queue.clone(), claimed_address(&claimed));
    let error = "why".to_owned();
    let write = async move { queue.move_to_dead_letters(address, None, error).await };
    hang_up(&store, &door, write).await;
    assert_eq!(names(&taken(waiting).await), ["b"]);
}

pub(crate) async fn deleting_a_message_wakes_for_the_next_one(store: TestStore) {
    let door = open(&store).await;
    let claimed = with_a_message_that_holds_up_another(&*store).await;
    let waiting = door.parked(from("q").partition("p")).await;
    let (queue, address) = (door.queue.clone(), claimed_address(&claimed));
    let delete = async move { queue.delete_message(address).await };
    hang_up(&store, &door, delete).await;
    assert_eq!(names(&taken(waiting).await), ["b"]);
}

/// Repeating a configuration is common, and a recheck of all waiters is not free.
pub(crate) async fn an_unchanged_configuration_causes_no_recheck(store: TestStore) {
    let door = open(&store).await;
    let mut rechecks = Vec::new();
    for namespace in ["shop", "shop", "other"] {
        let configured = door.queue.configure(in_namespace(namespace)).await;
        configured.unwrap();
        rechecks.push(door.queue.bus().recheck_requests());
    }
    assert_eq!(rechecks[1..], [rechecks[0], rechecks[0] + 1]);
}
