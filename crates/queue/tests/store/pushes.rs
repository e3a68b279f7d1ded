use uuid::Uuid;
use wakeline_queue::message::{NewMessage, PushReceipt};

use crate::{
    calls::{from, message, names, part, push, push_all, push_each, push_together},
    test_store::TestStore,
};

pub(crate) async fn a_push_gives_each_message_the_next_position(store: TestStore) {
    let [one, two] = store.nodes().await;
    push(&*one, "q", "p", &["a", "b"]).await;
    push(&*two, "q", "p", &["c"]).await;
    push(&*one, "q", "p", &["d", "e"]).await;
    let claimed = from("q").batch(10).claim(&*two).await;
    assert_eq!(names(&claimed), ["a", "b", "c", "d", "e"]);
    assert_eq!((part(&claimed).first, part(&claimed).end), (0, 5));
}

pub(crate) async fn a_message_is_delivered_with_all_its_fields(store: TestStore) {
    let sent = NewMessage {
        trace_id: Some(Uuid::new_v4()),
        payload: r#"{"text": "Zażółć \u0041 \\ \" '"}"#.into(),
        producer_sub: Some("someone".to_owned()),
        ..message("q", "π", "t ü")
    };
    let pushed = push_all(&*store, vec![sent.clone()]).await;
    let claimed = from("q").claim(&*store).await;
    let of = part(&claimed);
    let place = (&*claimed.queue, &*of.partition, &*claimed.group);
    assert_eq!(place, ("q", "π", "g"));
    let [got] = &*of.messages else {
        panic!("one message: {claimed:?}");
    };
    let stored = PushReceipt {
        id: got.id,
        transaction_id: "t ü".to_owned(),
        partition_id: of.partition_id(),
        duplicate: false,
    };
    assert_eq!(pushed, [stored]);
    assert_eq!(got.trace_id, sent.trace_id);
    assert_eq!(got.transaction_id, "t ü");
    assert_eq!(got.payload, &*sent.payload);
    assert_eq!(got.producer_sub, sent.producer_sub);
    assert!(got.created_us > 1_600_000_000_000_000);
}

pub(crate) async fn a_transaction_id_is_stored_once_within_a_push(store: TestStore) {
    let pushed = push_together(&*store, "q", "p", &["a", "b", "a"]).await;
    assert!(pushed.iter().map(|p| p.duplicate).eq([false, false, true]));
    assert_ne!(pushed[0].id, pushed[1].id);
    assert_eq!(pushed[0].id, pushed[2].id);
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["a", "b"]);
}

pub(crate) async fn a_transaction_id_is_stored_once_across_pushes(store: TestStore) {
    let [one, two] = store.nodes().await;
    let first = push_each(&*one, "q", "p", &["a"]).await.remove(0);
    // Repeating a push is safe, also with new messages beside it.
    let pushed = push_together(&*two, "q", "p", &["a", "b", "a"]).await;
    let results: Vec<_> = pushed.iter().map(|p| (p.id, p.duplicate)).collect();
    let new = pushed[1].id;
    assert_eq!(results, [(first.id, true), (new, false), (first.id, true)]);
    assert_ne!(new, first.id);
    let claimed = from("q").batch(9).claim(&*one).await;
    assert_eq!(names(&claimed), ["a", "b"]);
    assert_eq!(part(&claimed).end, 2, "a duplicate takes no position");
}

pub(crate) async fn a_transaction_id_belongs_to_its_partition(store: TestStore) {
    let keys = [("q", "p1"), ("q", "p2"), ("r", "p1")];
    let sent: Vec<_> = keys.map(|(q, p)| message(q, p, "a")).to_vec();
    let pushed = push_all(&*store, sent).await;
    assert!(pushed.iter().all(|pushed| !pushed.duplicate));
    for (queue, partition) in keys {
        let claimed = from(queue).partition(partition).claim(&*store).await;
        assert_eq!(names(&claimed), ["a"]);
    }
}
