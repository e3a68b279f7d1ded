//! Queues whose messages are sealed at rest.

use std::time::Duration;

use wakeline_queue::{
    ack::AckStatus,
    message::{NewMessage, PushRefusal},
    queue_admin::ConfigureRequest,
    seal::Sealer,
    write_batch::Rejection,
};
use wakeline_testkit::eventually;

use crate::{
    calls::{
        RELEASED, ack_of, configuration, from, message, names, part, push, retry, try_push,
        whole_batch,
    },
    test_door::{TestDoor, delivered, taken},
    test_store::TestStore,
};

const SECRET: &str = r#"{"secret": "Zażółć"}"#;

fn key() -> Option<Sealer> {
    Sealer::from_hex(&"0a".repeat(32))
}

fn sealed(queue: &str) -> ConfigureRequest {
    configuration(queue, |options| options.is_sealed = true)
}

/// A door with a key, and a sealed queue `q` with one message.
async fn with_a_secret(store: &TestStore) -> TestDoor {
    let door = TestDoor::with_key(store, key()).await;
    door.queue.configure(sealed("q")).await.unwrap();
    let secret = NewMessage {
        payload: SECRET.into(),
        ..message("q", "p", "a")
    };
    let pushed = door.queue.push(vec![secret]).await.unwrap();
    assert!(pushed[0].is_ok(), "{pushed:?}");
    door
}

pub(crate) async fn a_payload_is_sealed_in_the_store_and_opened_for_the_consumer(store: TestStore) {
    let door = with_a_secret(&store).await;
    let stored = from("q").group("other").claim(&*store).await;
    let stored = &part(&stored).messages[0];
    assert!(
        stored.is_sealed && !stored.payload.contains("secret"),
        "{stored:?}"
    );
    let claimed = taken(door.pop(from("q"))).await;
    let got = &part(&claimed).messages[0];
    assert_eq!((&*got.payload, got.is_sealed), (SECRET, false));
    assert_eq!(got.transaction_id, "a");
}

pub(crate) async fn one_push_to_sealed_and_plain_queues(store: TestStore) {
    with_a_secret(&store).await;
    push(&*store, "plain", "p", &["x"]).await;
    let sent = [("plain", "y"), ("q", "b"), ("plain", "z"), ("q", "a")];
    let sent = sent.map(|(queue, name)| message(queue, "p", name));
    // A node that does not know yet that the queue is sealed learns it from the refusal.
    let other = TestDoor::with_key(&store, key()).await;
    let pushed = other.queue.push(sent.to_vec()).await.unwrap();
    let duplicates = pushed.into_iter().map(|pushed| pushed.unwrap().duplicate);
    assert!(duplicates.eq([false, false, false, true]));
    let claimed = taken(other.pop(from("q").batch(9))).await;
    let payloads = claimed.messages().map(|message| &*message.payload);
    assert!(payloads.eq([SECRET, "\"b\""]));
    let plain = taken(other.pop(from("plain").batch(9))).await;
    assert_eq!(names(&plain), ["x", "y", "z"]);
}

pub(crate) async fn a_transaction_into_a_sealed_queue(store: TestStore) {
    let door = with_a_secret(&store).await;
    let claimed = taken(door.pop(from("q"))).await;
    let ack = ack_of(&claimed, "a", AckStatus::Completed);
    let batch = whole_batch(vec![ack], vec![message("q", "p2", "b")]);
    let other = TestDoor::with_key(&store, key()).await;
    let done = other.queue.apply(batch).await.unwrap();
    assert_eq!((done.rejection, &*done.acked), (None, &[RELEASED][..]));
    let claimed = taken(other.pop(from("q"))).await;
    assert_eq!(part(&claimed).messages[0].payload, "\"b\"");
}

pub(crate) async fn without_the_key_a_pop_fails_and_releases_its_claim(store: TestStore) {
    let door = with_a_secret(&store).await;
    let another_key = Sealer::from_hex(&"0b".repeat(32));
    for blind in [
        TestDoor::open(&store).await,
        TestDoor::with_key(&store, another_key).await,
    ] {
        for request in [from("q"), from("q").auto_ack()] {
            let refused = blind.queue.pop(request.0, Duration::ZERO).await;
            assert!(refused.is_err());
            let mut found = None;
            eventually("the claim to be released", async || {
                let held = door.queue.pop(from("q").0, Duration::ZERO).await;
                found = held.unwrap().value;
                found.is_some()
            })
            .await;
            let claimed = delivered(found.unwrap());
            assert_eq!(part(&claimed).messages[0].payload, SECRET);
            assert_eq!(retry(&*store, &claimed, "a").await, RELEASED);
        }
    }
}

pub(crate) async fn without_a_key_pushes_to_a_sealed_queue_are_refused(store: TestStore) {
    let door = with_a_secret(&store).await;
    let blind = TestDoor::open(&store).await;
    assert!(blind.queue.configure(sealed("r")).await.is_err());
    let plain = vec![message("q", "p", "b")];
    let refusal = PushRefusal::Unsealed;
    let pushed = blind.queue.push(plain.clone()).await.unwrap();
    assert_eq!(pushed, [Err(refusal)]);
    let whole = whole_batch(vec![], plain.clone());
    let done = blind.queue.apply(whole).await.unwrap();
    assert_eq!(done.rejection, Some(Rejection::Push(0, refusal)));
    // The store itself refuses plain messages.
    assert_eq!(try_push(&*store, plain).await.pushed, [Err(refusal)]);
    let claimed = taken(door.pop(from("q").batch(9))).await;
    assert_eq!(names(&claimed), ["a"]);
}
