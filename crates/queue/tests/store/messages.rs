use wakeline_queue::{
    Queue,
    browse::{ListedMessage, MessageAddress, MessageFilter, MessageStatus, Page, QUEUE_MODE},
    id,
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{
        ALL, DEAD, address, consume, from, make_dead, make_next_dead, names, of_queue, page,
        push_each, push_together,
    },
    test_store::TestStore,
};

const STATUSES: [Option<MessageStatus>; 5] = [
    None,
    Some(MessageStatus::Pending),
    Some(MessageStatus::Processing),
    Some(MessageStatus::Completed),
    Some(MessageStatus::DeadLetter),
];

async fn list(
    door: &Queue,
    filter: &MessageFilter,
    status: Option<MessageStatus>,
    page: Page,
) -> (Vec<ListedMessage>, i64) {
    let found = door.messages(filter, status, page).await;
    let found = found.unwrap();
    (found.rows, found.total)
}

fn ids(rows: &[ListedMessage]) -> Vec<&str> {
    let rows = rows.iter();
    rows.map(|row| &*row.message.transaction_id).collect()
}

pub(crate) async fn a_page_spans_segments_and_partitions(store: TestStore) {
    let door = store.queue();
    let wide: Vec<String> = (0..300).map(|at| format!("w{at}")).collect();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    push_together(&*store, "q", "wide", &wide).await;
    push_each(&*store, "q", "narrow", &["n0", "n1"]).await;
    push_together(&*store, "q", "wide", &["last0", "last1"]).await;
    push_each(&*store, "elsewhere", "p", &["x"]).await;

    let whole = list(&door, &of_queue("q"), None, ALL).await;
    assert_eq!((whole.0.len(), whole.1), (304, 304));
    let whole = ids(&whole.0);
    assert_eq!(whole[..5], ["last1", "last0", "n1", "n0", "w299"]);
    assert_eq!(whole[303], "w0");
    // Any page is a part of the whole list.
    for (limit, offset) in [
        (1, 0),
        (3, 1),
        (10, 3),
        (100, 130),
        (100, 250),
        (5, 304),
        (7, 999),
    ] {
        let (rows, total) = list(&door, &of_queue("q"), None, page(limit, offset)).await;
        let from = usize::try_from(offset).unwrap().min(304);
        let to = usize::try_from(offset + limit).unwrap().min(304);
        assert_eq!(ids(&rows), whole[from..to], "{limit} from {offset}");
        assert_eq!(total, 304);
    }
    let (rows, total) = list(&door, &of_queue("q"), None, page(0, 0)).await;
    assert_eq!((rows.len(), total), (0, 304));
    assert_eq!(list(&door, &of_queue("none"), None, ALL).await.1, 0);
}

pub(crate) async fn each_status_lists_its_part_of_the_messages(store: TestStore) {
    let door = store.queue();
    let all: Vec<String> = (0..12).map(|at| format!("m{at}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut pushed = push_together(&*store, "q", "p", &all[..6]).await;
    pushed.extend(push_each(&*store, "q", "p", &all[6..]).await);
    // Before any group reads, all are pending.
    let pending = Some(MessageStatus::Pending);
    assert_eq!(list(&door, &of_queue("q"), pending, ALL).await.1, 12);

    assert_eq!(consume(&*store, "q", QUEUE_MODE, 2).await, ["m0", "m1"]);
    assert_eq!(make_next_dead(&*store, "q", QUEUE_MODE).await, "m2");
    consume(&*store, "q", QUEUE_MODE, 1).await;
    let held = from("q")
        .group(QUEUE_MODE)
        .batch(4)
        .claim_soon(&*store)
        .await;
    assert_eq!(names(&held), ["m4", "m5", "m6", "m7"]);
    for index in [0, 5, 9] {
        assert!(
            store.delete_message(address(&pushed[index])).done().await,
            "m{index}"
        );
    }
    let expected = [
        vec!["m11", "m10", "m8", "m7", "m6", "m4", "m3", "m2", "m1"],
        vec!["m11", "m10", "m8"],
        vec!["m7", "m6", "m4"],
        vec!["m3", "m1"],
        vec!["m2"],
    ];
    for (status, expected) in STATUSES.into_iter().zip(&expected) {
        let (rows, total) = list(&door, &of_queue("q"), status, ALL).await;
        assert_eq!(ids(&rows), *expected, "{status:?}");
        assert_eq!(total, i64::try_from(expected.len()).unwrap(), "{status:?}");
        if let Some(status) = status {
            assert!(rows.iter().all(|row| row.status == status), "{status:?}");
        }
        // With pages of one message it is the same.
        for (offset, name) in expected.iter().enumerate() {
            let offset = i64::try_from(offset).unwrap();
            let (rows, _) = list(&door, &of_queue("q"), status, page(1, offset)).await;
            assert_eq!(ids(&rows), [*name], "{status:?} at {offset}");
        }
    }
    // In the whole list each message has the status under which it is found.
    let (rows, _) = list(&door, &of_queue("q"), None, ALL).await;
    for row in rows {
        let mut statuses = STATUSES.iter();
        let index = statuses.position(|status| *status == Some(row.status));
        let name = &*row.message.transaction_id;
        assert!(expected[index.unwrap()].contains(&name), "{row:?}");
    }
}

pub(crate) async fn a_list_is_limited_by_times(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a", "b", "c", "d", "e"]).await;
    push_each(&*store, "q", "other", &["x"]).await;
    let (all, _) = list(&door, &of_queue("q"), None, ALL).await;
    let at = |name: &str| {
        let found = all.iter().find(|row| row.message.transaction_id == name);
        found.unwrap().message.created_us
    };
    let within = async |from: Option<i64>, to: Option<i64>, status| {
        let filter = MessageFilter {
            from_us: from,
            to_us: to,
            ..of_queue("q")
        };
        let (rows, total) = list(&door, &filter, status, ALL).await;
        assert_eq!(total, i64::try_from(rows.len()).unwrap());
        ids(&rows).join("")
    };
    assert_eq!(within(Some(at("c")), None, None).await, "xedc");
    assert_eq!(within(None, Some(at("c")), None).await, "ba");
    assert_eq!(within(Some(at("b")), Some(at("e")), None).await, "dcb");
    assert_eq!(within(Some(at("x") + 1), None, None).await, "");
    assert_eq!(within(None, Some(0), None).await, "");
    // With a deleted message and a status.
    assert!(store.delete_message(address(&pushed[2])).done().await);
    assert_eq!(within(Some(at("b")), Some(at("e")), None).await, "db");
    let pending = Some(MessageStatus::Pending);
    assert_eq!(within(Some(at("b")), Some(at("e")), pending).await, "db");
}

pub(crate) async fn filters_select_messages(store: TestStore) {
    let door = store.queue();
    for (queue, partition, name) in [
        ("n.t", "p", "a"),
        ("n.t", "q", "b"),
        ("n.u", "p", "c"),
        ("m.t", "p", "d"),
    ] {
        push_each(&*store, queue, partition, &[name]).await;
    }
    let found = async |change: fn(&mut MessageFilter)| {
        let mut filter = MessageFilter::default();
        change(&mut filter);
        let (rows, total) = list(&door, &filter, None, ALL).await;
        assert_eq!(total, i64::try_from(rows.len()).unwrap());
        let mut names = ids(&rows);
        names.sort_unstable();
        names.join("")
    };
    assert_eq!(found(|_| {}).await, "abcd");
    assert_eq!(
        found(|filter| filter.namespace = Some("n".into())).await,
        "abc"
    );
    assert_eq!(found(|filter| filter.task = Some("t".into())).await, "abd");
    assert_eq!(
        found(|filter| filter.partition = Some("p".into())).await,
        "acd"
    );
    let both = |filter: &mut MessageFilter| {
        filter.queue = Some("n.t".into());
        filter.partition = Some("q".into());
    };
    assert_eq!(found(both).await, "b");
}

pub(crate) async fn a_message_is_found_by_either_id(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    let by_name = address(&pushed[1]);
    let by_id = MessageAddress {
        transaction_id: pushed[1].id.to_string(),
        ..by_name.clone()
    };
    for at in [by_name, by_id] {
        let found = door.message(&at).await.unwrap().unwrap();
        assert_eq!(found.message.message.id, pushed[1].id);
        assert_eq!(found.message.message.payload, "\"b\"");
        assert_eq!(found.message.status, MessageStatus::Pending);
        assert_eq!(found.message.readers.len(), 1);
        assert!(door.message_exists(&at).await.unwrap());
    }
    let first = address(&pushed[0]);
    let held = door.message(&first).await.unwrap().unwrap();
    assert_eq!(held.message.status, MessageStatus::Processing);
    assert_eq!(make_dead(&*store, &claimed, "a").await, DEAD);
    let dead = door.message(&first).await.unwrap().unwrap();
    assert_eq!(dead.message.status, MessageStatus::DeadLetter);
    assert_eq!(dead.letters[0].error.as_deref(), Some("no"));
}

pub(crate) async fn an_unknown_message_is_not_found(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a"]).await;
    let real = address(&pushed[0]);
    let behind = id::message(0, real.partition, 77).to_string();
    for (partition, name) in [
        (real.partition, "b"),
        (real.partition, &*behind),
        (real.partition + 1, "a"),
        (-1, "a"),
    ] {
        let at = MessageAddress {
            partition,
            transaction_id: name.into(),
        };
        assert!(door.message(&at).await.unwrap().is_none());
        assert!(!door.message_exists(&at).await.unwrap());
        assert!(!store.delete_message(at.clone()).done().await);
        let moved = store.move_to_dead_letters(at, None, "x".into());
        assert_eq!(moved.done().await, 0);
    }
}
