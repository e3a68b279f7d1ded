//! A caller that hangs up while its write commits has still written, and the waiters hear of it.
//! Nothing else wakes them here: the fallback asks once an hour.

use wakeline_queue::{
    ack::AckStatus,
    browse::MessageAddress,
    claim::Claim,
    options::Options,
    queue_admin::{ConfigureRequest, GroupScope, Seek},
};
use wakeline_testkit::eventually;

use crate::{
    calls::{RELEASED, Request, ack, configure, from, message, names, outcome, part, push},
    test_door::{TestDoor, taken},
    test_store::TestStore,
};

const HOUR_MS: i64 = 3_600_000;

async fn open(store: &TestStore) -> TestDoor {
    let door = TestDoor::open(store).await;
    door.watch();
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

fn group(partition: Option<&str>) -> GroupScope {
    GroupScope {
        group: "g".to_owned(),
        queue: Some("q".to_owned()),
        partition: partition.map(str::to_owned),
    }
}

/// A pop that waits for the queue, and one that waits for its partition only.
fn waiters() -> [Request; 2] {
    [from("q"), from("q").partition("p")]
}

/// A group that has consumed message `a`, which is all there is.
async fn with_a_group_at_the_end(door: &TestDoor) {
    push(&*door.store.inner, "q", "p", &["a"]).await;
    from("q").auto_ack().claim(&*door.store.inner).await;
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
    with_a_group_at_the_end(&door).await;
    for request in waiters() {
        for scope in [group(None), group(Some("p"))] {
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
        let delayed = Options {
            delay_ms: HOUR_MS,
            ..Options::default()
        };
        configure(&*door.store.inner, "q", delayed).await;
        let name = number.to_string();
        push(&*door.store.inner, "q", "p", &[&name]).await;
        let waiting = door.parked(request.auto_ack()).await;
        let (queue, new) = (door.queue.clone(), at_once("q", None));
        hang_up(&store, &door, async move { queue.configure(new).await }).await;
        assert_eq!(names(&taken(waiting).await), [name]);
    }
}

pub(crate) async fn another_namespace_wakes(store: TestStore) {
    let door = open(&store).await;
    push(&*door.store.inner, "q", "p", &["a"]).await;
    let waiting = door.parked(crate::calls::of(Some("shop"), None)).await;
    let (queue, new) = (door.queue.clone(), at_once("q", Some("shop")));
    hang_up(&store, &door, async move { queue.configure(new).await }).await;
    assert_eq!(names(&taken(waiting).await), ["a"]);
}

fn at_once(queue: &str, namespace: Option<&str>) -> ConfigureRequest {
    ConfigureRequest {
        queue: queue.to_owned(),
        namespace: namespace.map(str::to_owned),
        task: None,
        options: Options::default(),
        given: serde_json::Map::new(),
    }
}

pub(crate) async fn deleting_a_group_wakes(store: TestStore) {
    let door = open(&store).await;
    with_a_group_at_the_end(&door).await;
    for request in waiters() {
        let waiting = door.parked(request.auto_ack()).await;
        let queue = door.queue.clone();
        let delete = async move { queue.delete_group(group(None), false).await };
        hang_up(&store, &door, delete).await;
        assert_eq!(names(&taken(waiting).await), ["a"]);
    }
}

pub(crate) async fn the_end_of_a_pause_wakes(store: TestStore) {
    for request in waiters() {
        let door = open(&store).await;
        door.queue.pause_pops(true).await.unwrap();
        push(
            &*door.store.inner,
            "q",
            "p",
            &[&uuid::Uuid::new_v4().to_string()],
        )
        .await;
        let waiting = door.parked(request.auto_ack()).await;
        let queue = door.queue.clone();
        hang_up(&store, &door, async move { queue.pause_pops(false).await }).await;
        assert_eq!(names(&taken(waiting).await).len(), 1);
    }
}

fn address(claimed: &Claim) -> MessageAddress {
    MessageAddress {
        partition: part(claimed).number,
        transaction_id: names(claimed)[0].to_owned(),
    }
}

pub(crate) async fn a_retry_wakes(store: TestStore) {
    let door = open(&store).await;
    for request in waiters() {
        let name = uuid::Uuid::new_v4().to_string();
        push(&*door.store.inner, "q", "p", &[&name]).await;
        let claimed = from("q").claim(&*door.store.inner).await;
        ack(&*door.store.inner, &claimed, &name, AckStatus::DeadLetter).await;
        let waiting = door.parked(request.auto_ack()).await;
        let (queue, address) = (door.queue.clone(), address(&claimed));
        hang_up(&store, &door, async move { queue.retry(&address).await }).await;
        assert_eq!(names(&taken(waiting).await), [name]);
    }
}

/// Message `a` has failed and is tried again after an hour, which holds up `b` too.
async fn with_a_message_that_holds_up_another(door: &TestDoor) -> Claim {
    let slow = Options {
        retry_delay_ms: HOUR_MS,
        ..Options::default()
    };
    configure(&*door.store.inner, "q", slow).await;
    push(&*door.store.inner, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*door.store.inner).await;
    let failed = outcome(&*door.store.inner, &claimed, "a", AckStatus::Failed).await;
    assert_eq!(failed, RELEASED);
    claimed
}

pub(crate) async fn a_message_moved_to_the_dead_letters_wakes_for_what_follows_it(
    store: TestStore,
) {
    let door = open(&store).await;
    let claimed = with_a_message_that_holds_up_another(&door).await;
    let waiting = door.parked(from("q").partition("p")).await;
    let (queue, address) = (door.queue.clone(), address(&claimed));
    let move_to_dead_letters = async move {
        queue
            .move_to_dead_letters(address, None, "why".to_owned())
            .await
    };
    hang_up(&store, &door, move_to_dead_letters).await;
    assert_eq!(names(&taken(waiting).await), ["b"]);
}

pub(crate) async fn deleting_a_message_wakes_for_what_follows_it(store: TestStore) {
    let door = open(&store).await;
    let claimed = with_a_message_that_holds_up_another(&door).await;
    let waiting = door.parked(from("q").partition("p")).await;
    let (queue, address) = (door.queue.clone(), address(&claimed));
    let delete = async move { queue.delete_message(address).await };
    hang_up(&store, &door, delete).await;
    assert_eq!(names(&taken(waiting).await), ["b"]);
}

/// Repeating a configuration is common, and a recheck of all waiters is not free.
pub(crate) async fn configuring_the_same_again_wakes_nobody(store: TestStore) {
    let door = open(&store).await;
    let rechecks = || door.queue.bus().recheck_requests();
    door.queue
        .configure(at_once("q", Some("shop")))
        .await
        .unwrap();
    let before = rechecks();
    door.queue
        .configure(at_once("q", Some("shop")))
        .await
        .unwrap();
    assert_eq!(rechecks(), before);
    door.queue
        .configure(at_once("q", Some("other")))
        .await
        .unwrap();
    assert_eq!(rechecks(), before + 1);
}
