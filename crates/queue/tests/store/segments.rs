//! How messages are stored together makes no difference.

use wakeline_queue::{
    ack::AckStatus,
    message::NewMessage,
    segment::{MAX_BYTES, MAX_MESSAGES},
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{GOES_ON, RELEASED, from, message, names, outcome, push, push_all},
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

pub(crate) async fn a_batch_goes_across_them(store: TestStore) {
    const COUNT: usize = MAX_MESSAGES * 2 + 40;
    push_all(&*store, numbered(COUNT)).await;
    assert_eq!(store.database.count("queue_segment").await, 3);
    let mut seen = Vec::new();
    for batch in [1, MAX_MESSAGES - 1, 1, 100, 28, 39] {
        let request = from("q").batch(u32::try_from(batch).unwrap());
        let claimed = request.claim(&*store).await;
        let last = names(&claimed).last().unwrap().to_owned().to_owned();
        seen.extend(numbers(&names(&claimed)));
        assert_eq!(
            outcome(&*store, &claimed, &last, AckStatus::Completed).await,
            RELEASED
        );
    }
    assert_eq!(seen, (0..COUNT).collect::<Vec<_>>());
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn large_messages_have_their_own(store: TestStore) {
    let large: Vec<NewMessage> = (0..6)
        .map(|number| {
            let mut large = message("q", "p", &number.to_string());
            let size = if number == 3 {
                MAX_BYTES * 3
            } else {
                MAX_BYTES * 2 / 3
            };
            large.payload = format!("\"{}\"", "x".repeat(size)).into();
            large
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

pub(crate) async fn many_small_ones_are_one_batch(store: TestStore) {
    const COUNT: usize = 150;
    for one in numbered(COUNT) {
        push_all(&*store, vec![one]).await;
    }
    let claimed = from("q").batch(100).claim(&*store).await;
    assert_eq!(numbers(&names(&claimed)), (0..100).collect::<Vec<_>>());
    assert_eq!(
        outcome(&*store, &claimed, "41", AckStatus::Completed).await,
        GOES_ON
    );
    assert_eq!(
        outcome(&*store, &claimed, "60", AckStatus::Failed).await,
        RELEASED
    );
    let claimed = from("q").batch(1_000).claim(&*store).await;
    assert_eq!(numbers(&names(&claimed)), (42..COUNT).collect::<Vec<_>>());
}

pub(crate) async fn the_dead_on_both_sides_of_a_boundary(store: TestStore) {
    push_all(&*store, numbered(MAX_MESSAGES + 2)).await;
    let all = from("q").batch(1_000);
    for dead in [MAX_MESSAGES - 1, MAX_MESSAGES] {
        let claimed = all.claim(&*store).await;
        outcome(&*store, &claimed, &dead.to_string(), AckStatus::DeadLetter).await;
    }
    let claimed = all.claim(&*store).await;
    let last = MAX_MESSAGES + 1;
    let expected: Vec<usize> = (0..MAX_MESSAGES - 1).chain([last]).collect();
    assert_eq!(numbers(&names(&claimed)), expected);
    let before = (MAX_MESSAGES - 2).to_string();
    assert_eq!(
        outcome(&*store, &claimed, &before, AckStatus::Completed).await,
        GOES_ON
    );
    assert_eq!(
        outcome(&*store, &claimed, &last.to_string(), AckStatus::Completed).await,
        RELEASED
    );
    let letters = "SELECT position, CAST(failures AS bigint) FROM queue_dead_letter ORDER BY 1";
    let (one, two) = (MAX_MESSAGES as i64 - 1, MAX_MESSAGES as i64);
    assert_eq!(store.database.pairs(letters).await, [(one, 0), (two, 0)]);
}

pub(crate) async fn ten_thousand_of_one_push_come_in_order(store: TestStore) {
    const COUNT: usize = 10_000;
    let pushed = push_all(&*store, numbered(COUNT)).await;
    assert!(pushed.iter().all(|pushed| !pushed.duplicate));
    assert!(pushed.is_sorted_by_key(|pushed| pushed.id));
    let claimed = from("q").batch(10_000).claim(&*store).await;
    assert_eq!(numbers(&names(&claimed)), (0..COUNT).collect::<Vec<_>>());
    let last = (COUNT - 1).to_string();
    assert_eq!(
        outcome(&*store, &claimed, &last, AckStatus::Completed).await,
        RELEASED
    );
    let mut seen = Vec::new();
    while seen.len() < COUNT {
        let claimed = from("q")
            .group("slow")
            .batch(3_333)
            .auto_ack()
            .claim(&*store)
            .await;
        seen.extend(numbers(&names(&claimed)));
    }
    assert_eq!(seen, (0..COUNT).collect::<Vec<_>>());
    push(&*store, "q", "p", &["next"]).await;
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["next"]);
}

/// Characters that JSON, SQL and PostgreSQL's texts each have their troubles with.
pub(crate) async fn every_text_comes_back(store: TestStore) {
    let payloads = [
        r#""\u0000""#,
        r#"["\ud800", "\\u0000"]"#,
        r#"{"a":"\ud83d\ude00 ' \" \\ / \b","a":1}"#,
        "[1, 2.50, 12345678901234567890123, 1e400]",
        "null",
        "\"\u{2028}\u{feff}\u{1f600}\"",
        " { } ",
    ];
    let sent: Vec<NewMessage> = payloads
        .iter()
        .enumerate()
        .map(|(number, payload)| {
            let mut new = message(
                "q ' \" %",
                "π\u{1f600}\\",
                &format!("{number} ' \" \\ \u{1}"),
            );
            new.payload = (*payload).into();
            new
        })
        .collect();
    push_all(&*store, sent.clone()).await;
    let claimed = from("q ' \" %")
        .group("looks")
        .batch(9)
        .claim(&*store)
        .await;
    assert_eq!(claimed.messages().count(), sent.len());
    for (got, sent) in claimed.messages().zip(&sent) {
        assert_eq!(got.payload.trim(), sent.payload.trim());
        assert_eq!(Some(&got.transaction_id), sent.transaction_id.as_ref());
    }
    // Also as dead letters, and when they are swept.
    for message in sent.iter().rev() {
        let claimed = from("q ' \" %").batch(9).claim_soon(&*store).await;
        let name = message.transaction_id.as_deref().unwrap();
        outcome(&*store, &claimed, name, AckStatus::DeadLetter).await;
    }
    assert_eq!(store.database.count("queue_dead_letter").await, 7);
    store.delete_queue("q ' \" %".to_owned()).done().await;
    while store.sweep(500).done().await.is_more {}
    assert_eq!(store.database.count("queue_transaction").await, 0);
}
