//! Queues whose messages are sealed at rest.

use std::time::Duration;

use tokio::time::timeout;
use wakeline_queue::{
    ack::AckStatus,
    message::PushRefusal,
    options::Options,
    queue_admin::ConfigureRequest,
    seal::Sealer,
    service::ClaimGuard,
    write_batch::{Rejection, WriteBatch},
};
use wakeline_web::DeliveryGuard;

use crate::{
    calls::{RELEASED, from, message, names, part, push, say, try_push},
    test_door::{STUCK, TestDoor, taken},
    test_store::TestStore,
};

const SECRET: &str = r#"{"secret": "Zażółć"}"#;

fn key() -> Option<Sealer> {
    Sealer::from_hex(&"0a".repeat(32))
}

fn sealed(queue: &str) -> ConfigureRequest {
    ConfigureRequest {
        queue: queue.to_owned(),
        namespace: None,
        task: None,
        options: Options {
            is_sealed: true,
            ..Options::default()
        },
        given: serde_json::Map::new(),
    }
}

/// A door with a key, and a sealed queue `q` with one message.
async fn with_a_secret(store: &TestStore) -> TestDoor {
    let door = TestDoor::with_key(store, key()).await;
    door.queue.configure(sealed("q")).await.unwrap();
    let mut secret = message("q", "p", "a");
    secret.payload = SECRET.into();
    let pushed = door.queue.push(vec![secret]).await.unwrap();
    assert!(pushed[0].is_ok(), "{pushed:?}");
    door
}

pub(crate) async fn what_is_stored_is_sealed_and_what_is_handed_out_is_not(store: TestStore) {
    let door = with_a_secret(&store).await;
    let stored = from("q").group("looks").claim(&*door.store.inner).await;
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

pub(crate) async fn sealed_and_plain_queues_in_one_push(store: TestStore) {
    let door = with_a_secret(&store).await;
    push(&*door.store.inner, "plain", "p", &["x"]).await;
    let sent = [("plain", "y"), ("q", "b"), ("plain", "z"), ("q", "a")];
    let sent = sent.map(|(queue, name)| message(queue, "p", name));
    // A node that has not seen the queue yet learns by being refused.
    let other = TestDoor::with_key(&store, key()).await;
    let pushed = other.queue.push(sent.to_vec()).await.unwrap();
    let told: Vec<bool> = pushed
        .into_iter()
        .map(|pushed| pushed.unwrap().duplicate)
        .collect();
    assert_eq!(told, [false, false, false, true]);
    let claimed = taken(other.pop(from("q").batch(9))).await;
    let payloads: Vec<&str> = claimed
        .messages()
        .map(|message| &*message.payload)
        .collect();
    assert_eq!(payloads, [SECRET, "\"b\""]);
    let plain = taken(other.pop(from("plain").batch(9))).await;
    assert_eq!(names(&plain), ["x", "y", "z"]);
}

pub(crate) async fn a_transaction_into_a_sealed_queue(store: TestStore) {
    let door = with_a_secret(&store).await;
    let claimed = taken(door.pop(from("q"))).await;
    let batch = WriteBatch {
        pushes: vec![message("q", "p2", "b")],
        acks: vec![say(&claimed, "a", AckStatus::Completed)],
        is_whole: true,
        ..WriteBatch::default()
    };
    let other = TestDoor::with_key(&store, key()).await;
    let done = other.queue.apply(batch).await.unwrap();
    assert_eq!((done.rejection, &*done.acked), (None, &[RELEASED][..]));
    let claimed = taken(other.pop(from("q"))).await;
    assert_eq!(part(&claimed).messages[0].payload, "\"b\"");
}

/// It may take a moment until it is.
async fn released(door: &TestDoor) -> ClaimGuard {
    let looking = async {
        loop {
            let held = door.queue.pop(from("q").0, Duration::ZERO).await.unwrap();
            if let Some(claim) = held.value {
                return claim;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(STUCK, looking).await.expect("it is there again")
}

pub(crate) async fn without_the_key_nothing_is_taken_and_nothing_lost(store: TestStore) {
    let door = with_a_secret(&store).await;
    let another_key = Sealer::from_hex(&"0b".repeat(32));
    for blind in [
        TestDoor::open(&store).await,
        TestDoor::with_key(&store, another_key).await,
    ] {
        for request in [from("q"), from("q").auto_ack()] {
            let refused = blind.queue.pop(request.0, Duration::ZERO).await;
            assert!(refused.is_err());
            let claim = released(&door).await;
            assert_eq!(claim.claim().parts[0].messages[0].payload, SECRET);
            let claimed = claim.claim().clone();
            claim.delivered();
            let retry = say(&claimed, "a", AckStatus::Retry);
            crate::lost_wakes::acknowledge(&door.queue, retry).await;
        }
    }
}

pub(crate) async fn without_a_key_nothing_is_sealed(store: TestStore) {
    let door = with_a_secret(&store).await;
    let blind = TestDoor::open(&store).await;
    assert!(blind.queue.configure(sealed("r")).await.is_err());
    let pushed = blind
        .queue
        .push(vec![message("q", "p", "b")])
        .await
        .unwrap();
    assert_eq!(pushed, [Err(PushRefusal::Unsealed)]);
    let whole = WriteBatch {
        pushes: vec![message("q", "p", "b")],
        is_whole: true,
        ..WriteBatch::default()
    };
    let done = blind.queue.apply(whole).await.unwrap();
    assert_eq!(
        done.rejection,
        Some(Rejection::Push(0, PushRefusal::Unsealed))
    );
    // The store itself does not keep what is plain.
    let plain = try_push(&*door.store.inner, vec![message("q", "p", "c")]).await;
    assert_eq!(plain.pushed, [Err(PushRefusal::Unsealed)]);
    let claimed = taken(door.pop(from("q").batch(9))).await;
    assert_eq!(names(&claimed), ["a"]);
}
