//! How messages are stored together makes no difference.

use wakeline_queue::{
    message::NewMessage,
    segment::{MAX_BYTES, MAX_MESSAGES},
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{
        DEAD_LETTERS, GOES_ON, RELEASED, complete, fail, from, make_dead, message, names, push,
        push_all,
    },
    test_store::TestStore,
};

fn numbered(count: usize) -> Vec<NewMessage> {
    (0..count)
        .map(|number| message("q", "p", &number.to_string()))
        .collect()
}

fn numbers(names: &[&str]) -> Vec<usize> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

pub(crate) async fn a_batch_spans_segments(store: TestStore) {
    const COUNT: usize = MAX_MESSAGES * 2 + 40;
    push_all(&*store, numbered(COUNT)).await;
    assert_eq!(store.database.count("queue_segment").await, 3);
    let mut seen = Vec::new();
    for batch in [1, MAX_MESSAGES - 1, 1, 100, 28, 39] {
        let request = from("q").batch(u32::try_from(batch).unwrap());
        let claimed = request.claim(&*store).await;
        let names = names(&claimed);
        seen.extend(numbers(&names));
        let last = names.last().unwrap();
        assert_eq!(complete(&*store, &claimed, last).await, RELEASED);
    }
    assert_eq!(seen, (0..COUNT).collect::<Vec<_>>());
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn a_large_message_is_a_segment_of_its_own(store: TestStore) {
    let large: Vec<NewMessage> = (0..6)
        .map(|number| {
            let size = match number {
                3 => MAX_BYTES * 3,
                _ => MAX_BYTES * 2 / 3,
            };
            NewMessage {
                payload: format!("\"{}\"", "x".repeat(size)).into(),
                ..message("q", "p", &number.to_string())
            }
        })
        .collect();
    push_all(&*store, large.clone()).await;
    assert_eq!(store.database.count("queue_segment").await, 6);
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(numbers(&names(&claimed)), [0, 1, 2, 3, 4, 5]);
    for (got, sent) in claimed.messages().zip(&large) {
        assert_eq!(got.payload.len(), sent.payload.len());
    }
}

pub(crate) async fn a_batch_spans_many_small_segments(store: TestStore) {
    const COUNT: usize = 150;
    for one in numbered(COUNT) {
        push_all(&*store, vec![one]).await;
    }
    let claimed = from("q").batch(100).claim(&*store).await;
    assert_eq!(numbers(&names(&claimed)), (0..100).collect::<Vec<_>>());
    assert_eq!(complete(&*store, &claimed, "41").await, GOES_ON);
    assert_eq!(fail(&*store, &claimed, "60").await, RELEASED);
    let claimed = from("q").batch(1_000).claim(&*store).await;
    assert_eq!(numbers(&names(&claimed)), (42..COUNT).collect::<Vec<_>>());
}

pub(crate) async fn dead_messages_on_both_sides_of_a_segment_boundary_are_skipped(
    store: TestStore,
) {
    push_all(&*store, numbered(MAX_MESSAGES + 2)).await;
    let all = from("q").batch(1_000);
    for dead in [MAX_MESSAGES - 1, MAX_MESSAGES] {
        let claimed = all.claim(&*store).await;
        make_dead(&*store, &claimed, &dead.to_string()).await;
    }
    let claimed = all.claim(&*store).await;
    let last = MAX_MESSAGES + 1;
    let expected: Vec<usize> = (0..MAX_MESSAGES - 1).chain([last]).collect();
    assert_eq!(numbers(&names(&claimed)), expected);
    let before = (MAX_MESSAGES - 2).to_string();
    assert_eq!(complete(&*store, &claimed, &before).await, GOES_ON);
    assert_eq!(
        complete(&*store, &claimed, &last.to_string()).await,
        RELEASED
    );
    let (one, two) = (MAX_MESSAGES as i64 - 1, MAX_MESSAGES as i64);
    assert_eq!(
        store.database.pairs(DEAD_LETTERS).await,
        [(one, 0), (two, 0)]
    );
}

pub(crate) async fn ten_thousand_messages_of_one_push_are_delivered_in_order(store: TestStore) {
    const COUNT: usize = 10_000;
    let pushed = push_all(&*store, numbered(COUNT)).await;
    assert!(pushed.iter().all(|pushed| !pushed.duplicate));
    assert!(pushed.is_sorted_by_key(|pushed| pushed.id));
    let claimed = from("q").batch(10_000).claim(&*store).await;
    assert_eq!(numbers(&names(&claimed)), (0..COUNT).collect::<Vec<_>>());
    let last = (COUNT - 1).to_string();
    assert_eq!(complete(&*store, &claimed, &last).await, RELEASED);
    let mut seen = Vec::new();
    while seen.len() < COUNT {
        let part = from("q").group("slow").batch(3_333).auto_ack();
        seen.extend(numbers(&names(&part.claim(&*store).await)));
    }
    assert_eq!(seen, (0..COUNT).collect::<Vec<_>>());
    push(&*store, "q", "p", &["next"]).await;
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["next"]);
}

/// Characters that JSON, SQL or PostgreSQL's texts treat in a special way.
pub(crate) async fn special_characters_are_kept(store: TestStore) {
    let payloads = [
        r#""\u0000""#,
        r#"["\ud800", "\\u0000"]"#,
        r#"{"a":"\ud83d\ude00 ' \" \\ / \b","a":1}"#,
        "[1, 2.50, 12345678901234567890123, 1e400]",
        "null",
        "\"\u{2028}\u{feff}\u{1f600}\"",
        " { } ",
    ];
    let queue = "q ' \" %";
    let sent = payloads.into_iter().enumerate().map(|(number, payload)| {
        let transaction = format!("{number} ' \" \\ \u{1}");
        NewMessage {
            payload: payload.into(),
            ..message(queue, "π\u{1f600}\\", &transaction)
        }
    });
    let sent: Vec<NewMessage> = sent.collect();
    push_all(&*store, sent.clone()).await;
    let claimed = from(queue).group("other").batch(9).claim(&*store).await;
    assert_eq!(claimed.messages().count(), sent.len());
    for (got, sent) in claimed.messages().zip(&sent) {
        assert_eq!(got.payload.trim(), sent.payload.trim());
        assert_eq!(Some(&got.transaction_id), sent.transaction_id.as_ref());
    }
    // Also as dead letters, and when they are swept.
    for message in sent.iter().rev() {
        let claimed = from(queue).batch(9).claim_soon(&*store).await;
        let name = message.transaction_id.as_deref().unwrap();
        make_dead(&*store, &claimed, name).await;
    }
    assert_eq!(store.database.count("queue_dead_letter").await, 7);
    store.delete_queue(queue.to_owned()).done().await;
    while store.sweep(500).done().await.is_more {}
    assert_eq!(store.database.count("queue_transaction").await, 0);
}
