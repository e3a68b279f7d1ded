//! Queues whose messages are sealed at rest.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use futures_util::join;
use http::StatusCode;
use serde_json::json;
use uuid::Uuid;
use wakeline_queue::{
    ack::AckStatus,
    message::{NewMessage, PushRefusal},
    options::OptionChanges,
    queue_admin::{ConfigureRequest, QueueChange},
    seal::{Fingerprint, KeyFile, Sealer},
    write_batch::Rejection,
};
use wakeline_testkit::eventually;
use wakeline_web::Problem;

use crate::{
    calls::{
        RELEASED, ack_of, complete, configuration, from, message, names, part, push, retry,
        try_push, whole_batch,
    },
    http_calls::Routes,
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

/// What a caller of the routes asks for.
fn encrypted(queue: &str) -> QueueChange {
    let options = json!({"encryptionEnabled": true});
    let options = options.as_object().cloned().expect("an object");
    QueueChange {
        queue: queue.to_owned(),
        namespace: None,
        task: None,
        options: OptionChanges::read(options, false).expect("known options"),
    }
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

pub(crate) async fn one_push_seals_only_the_payloads_of_sealed_queues(store: TestStore) {
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

pub(crate) async fn a_transaction_seals_the_payloads_of_a_sealed_queue(store: TestStore) {
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
    assert!(blind.queue.change(encrypted("r")).await.is_err());
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

const KEYS: [&str; 2] = ["0a", "0b"];

fn keys(digits: &[&str]) -> Sealer {
    let keys: Vec<String> = digits.iter().map(|digits| digits.repeat(32)).collect();
    Sealer::from_hex(&keys.join(",")).expect("keys")
}

async fn door(store: &TestStore, digits: &[&str]) -> TestDoor {
    TestDoor::with_key(store, (!digits.is_empty()).then(|| keys(digits))).await
}

async fn ask(door: &TestDoor, queue: &str) -> Result<Option<Fingerprint>, Problem> {
    let changed = door.queue.change(encrypted(queue)).await;
    Ok(changed?.made_key)
}

/// A directory of the test's own.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("wakeline-key-{}", Uuid::now_v7()));
        fs::create_dir(&path).expect("a directory can be made");
        Self(path)
    }

    fn file(&self) -> KeyFile {
        KeyFile::in_directory(&self.0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) async fn the_first_queue_that_asks_for_encryption_makes_a_key(store: TestStore) {
    let directory = Directory::new();
    let door = door(&store, &[]).await;
    door.queue.set_key_file(directory.file());
    assert!(directory.file().read().unwrap().is_none());
    // Two at once make one.
    let (one, other) = join!(ask(&door, "q"), ask(&door, "r"));
    let made: Vec<Fingerprint> = [one, other]
        .into_iter()
        .filter_map(Result::unwrap)
        .collect();
    let kept = directory.file().read().unwrap().expect("a key");
    assert_eq!(made, kept.fingerprints());
    let metadata = fs::metadata(directory.file().path()).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 1);
    door.queue.push(vec![message("q", "p", "a")]).await.unwrap();
    let stored = from("q").group("other").claim(&*store).await;
    assert!(part(&stored).messages[0].is_sealed);
    // After a restart.
    let again = TestDoor::with_key(&store, Some(kept)).await;
    again.queue.set_key_file(directory.file());
    again.queue.check_key().await.unwrap();
    assert_eq!(ask(&again, "s").await.unwrap(), None);
    let claimed = taken(again.pop(from("q"))).await;
    assert_eq!(part(&claimed).messages[0].payload, "\"a\"");
}

pub(crate) async fn no_key_is_made_beside_sealed_messages(store: TestStore) {
    let directory = Directory::new();
    ask(&door(&store, &["0a"]).await, "q").await.unwrap();
    let lost = door(&store, &[]).await;
    lost.queue.set_key_file(directory.file());
    let refused = ask(&lost, "r").await.unwrap_err();
    let key = keys(&["0a"]).fingerprints()[0].to_string();
    assert!(refused.detail().contains(&key), "{refused:?}");
    assert!(directory.file().read().unwrap().is_none());
    assert!(lost.queue.check_key().await.is_err());
}

pub(crate) async fn a_server_with_another_key_seals_nothing(store: TestStore) {
    ask(&door(&store, &["0a"]).await, "q").await.unwrap();
    let other = door(&store, &["0b"]).await;
    let [store_key, server_key] = KEYS.map(|digits| keys(&[digits]).fingerprints()[0]);
    let names_both = |text: &str| {
        for key in [store_key, server_key] {
            assert!(text.contains(&key.to_string()), "{text}");
        }
    };
    names_both(ask(&other, "r").await.unwrap_err().detail());
    names_both(&other.queue.check_key().await.unwrap_err().to_string());
    let refusal = PushRefusal::OtherKey {
        store: store_key,
        server: Some(server_key),
    };
    let secret = vec![message("q", "p", "a")];
    let pushed = other.queue.push(secret.clone()).await.unwrap();
    assert_eq!(pushed, [Err(refusal)]);
    let whole = whole_batch(vec![], secret);
    let done = other.queue.apply(whole).await.unwrap();
    assert_eq!(done.rejection, Some(Rejection::Push(0, refusal)));
    assert_eq!(store.messages().await, 0);
    let routes = Routes::of(other.queue.clone());
    let items = json!({"items": [{"queue": "q", "payload": 1}]});
    let (status, answer) = routes.ask_post("/api/v1/push", &items).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(answer["code"], "sealed");
    names_both(answer["error"].as_str().expect("a text"));
}

pub(crate) async fn the_first_key_of_a_list_replaces_the_stores_key(store: TestStore) {
    let old = door(&store, &["0a"]).await;
    ask(&old, "q").await.unwrap();
    old.queue.push(vec![message("q", "p", "a")]).await.unwrap();
    let both = door(&store, &["0b", "0a"]).await;
    both.queue.check_key().await.unwrap();
    both.queue.push(vec![message("q", "p", "b")]).await.unwrap();
    // A node that does not have the new key can still read what was sealed with the old one.
    let claimed = taken(old.pop(from("q"))).await;
    assert_eq!(complete(&*store, &claimed, "a").await, RELEASED);
    let refused = old.queue.pop(from("q").0, Duration::ZERO).await;
    assert!(refused.is_err());
    let refused = old.queue.push(vec![message("q", "p", "c")]).await.unwrap();
    assert!(matches!(refused[0], Err(PushRefusal::OtherKey { .. })));
    let new = door(&store, &["0b"]).await;
    let mut found = None;
    eventually("the claim to be released", async || {
        let held = new.queue.pop(from("q").0, Duration::ZERO).await;
        found = held.unwrap().value;
        found.is_some()
    })
    .await;
    let claimed = delivered(found.unwrap());
    assert_eq!(part(&claimed).messages[0].payload, "\"b\"");
}

pub(crate) async fn without_a_place_for_a_key_encryption_is_refused(store: TestStore) {
    let routes = Routes::of(door(&store, &[]).await.queue);
    let body = json!({"queue": "q", "options": {"encryptionEnabled": true}});
    let (status, refused) = routes.ask_post("/api/v1/configure", &body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    assert_eq!(refused["field"], "options.encryptionEnabled");
    let text = refused["error"].as_str().expect("a text");
    assert!(text.contains("the same on all nodes"), "{text}");
    assert_eq!(store.database.count("queue").await, 0);
}
