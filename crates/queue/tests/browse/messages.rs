use wakeline_queue::{
    ack::AckStatus,
    browse::{ListedMessage, MessageAddress, MessageFilter, MessageStatus, Page},
    id,
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, QUEUE_MODE, address, of_queue, page};

const STATUSES: [Option<MessageStatus>; 5] = [
    None,
    Some(MessageStatus::Pending),
    Some(MessageStatus::Processing),
    Some(MessageStatus::Completed),
    Some(MessageStatus::DeadLetter),
];

async fn list(
    fixture: &Fixture,
    filter: &MessageFilter,
    status: Option<MessageStatus>,
    page: Page,
) -> (Vec<ListedMessage>, i64) {
    let found = fixture.queue.messages(filter, status, page).await;
    let found = found.unwrap();
    (found.rows, found.total)
}

fn ids(seen: &[ListedMessage]) -> Vec<&str> {
    seen.iter()
        .map(|seen| &*seen.message.transaction_id)
        .collect()
}

pub(crate) async fn a_page_goes_across_segments_and_partitions(fixture: Fixture) {
    let wide: Vec<String> = (0..300).map(|at| format!("w{at}")).collect();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    fixture.push_together("q", "wide", &wide).await;
    fixture.push("q", "narrow", &["n0", "n1"]).await;
    fixture
        .push_together("q", "wide", &["last0", "last1"])
        .await;
    fixture.push("elsewhere", "p", &["x"]).await;

    let whole = list(&fixture, &of_queue("q"), None, ALL).await;
    assert_eq!((whole.0.len(), whole.1), (304, 304));
    let whole = ids(&whole.0);
    assert_eq!(whole[..5], ["last1", "last0", "n1", "n0", "w299"]);
    assert_eq!(whole[303], "w0");
    // Any page is a piece of the whole.
    for (limit, offset) in [
        (1, 0),
        (3, 1),
        (10, 3),
        (100, 130),
        (100, 250),
        (5, 304),
        (7, 999),
    ] {
        let (rows, total) = list(&fixture, &of_queue("q"), None, page(limit, offset)).await;
        let from = usize::try_from(offset).unwrap().min(304);
        let to = usize::try_from(offset + limit).unwrap().min(304);
        assert_eq!(ids(&rows), whole[from..to], "{limit} from {offset}");
        assert_eq!(total, 304);
    }
    let (rows, total) = list(&fixture, &of_queue("q"), None, page(0, 0)).await;
    assert_eq!((rows.len(), total), (0, 304));
    assert_eq!(list(&fixture, &of_queue("none"), None, ALL).await.1, 0);
}

pub(crate) async fn a_status_is_a_part_of_the_whole(fixture: Fixture) {
    let names: Vec<String> = (0..12).map(|at| format!("m{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut pushed = fixture.push_together("q", "p", &names[..6]).await;
    pushed.extend(fixture.push("q", "p", &names[6..]).await);
    // Before anybody reads, all are pending.
    let pending = Some(MessageStatus::Pending);
    assert_eq!(list(&fixture, &of_queue("q"), pending, ALL).await.1, 12);

    assert_eq!(fixture.complete("q", QUEUE_MODE, 2).await, ["m0", "m1"]);
    assert_eq!(fixture.make_next_dead_letter("q", QUEUE_MODE).await, "m2");
    fixture.complete("q", QUEUE_MODE, 1).await;
    let held = fixture.pop("q", QUEUE_MODE, 4).await.unwrap();
    assert_eq!(crate::fixture::ids(&held), ["m4", "m5", "m6", "m7"]);
    for index in [0, 5, 9] {
        let deleted = fixture
            .store
            .delete_message(address(&pushed[index]))
            .commit_alone()
            .await;
        assert!(deleted.unwrap(), "m{index}");
    }
    let expected = [
        vec!["m11", "m10", "m8", "m7", "m6", "m4", "m3", "m2", "m1"],
        vec!["m11", "m10", "m8"],
        vec!["m7", "m6", "m4"],
        vec!["m3", "m1"],
        vec!["m2"],
    ];
    for (status, expected) in STATUSES.into_iter().zip(&expected) {
        let (rows, total) = list(&fixture, &of_queue("q"), status, ALL).await;
        assert_eq!(ids(&rows), *expected, "{status:?}");
        assert_eq!(total, i64::try_from(expected.len()).unwrap(), "{status:?}");
        if let Some(status) = status {
            assert!(rows.iter().all(|seen| seen.status == status), "{status:?}");
        }
        // One by one it is the same.
        for (offset, name) in expected.iter().enumerate() {
            let offset = i64::try_from(offset).unwrap();
            let (rows, _) = list(&fixture, &of_queue("q"), status, page(1, offset)).await;
            assert_eq!(ids(&rows), [*name], "{status:?} at {offset}");
        }
    }
    // In the whole each has the status under which it is found.
    let (rows, _) = list(&fixture, &of_queue("q"), None, ALL).await;
    for seen in rows {
        let index = 1 + STATUSES[1..]
            .iter()
            .position(|status| *status == Some(seen.status))
            .unwrap();
        let name = &*seen.message.transaction_id;
        assert!(expected[index].contains(&name), "{name}: {:?}", seen.status);
    }
}

pub(crate) async fn times_cut_a_list(fixture: Fixture) {
    fixture.push("q", "p", &["a", "b", "c", "d", "e"]).await;
    fixture.push("q", "other", &["x"]).await;
    let (all, _) = list(&fixture, &of_queue("q"), None, ALL).await;
    let at = |name: &str| {
        let found = all.iter().find(|seen| seen.message.transaction_id == name);
        found.unwrap().message.created_us
    };
    let cut = async |from: Option<i64>, to: Option<i64>, status| {
        let filter = MessageFilter {
            from_us: from,
            to_us: to,
            ..of_queue("q")
        };
        let (rows, total) = list(&fixture, &filter, status, ALL).await;
        assert_eq!(total, i64::try_from(rows.len()).unwrap());
        ids(&rows).join("")
    };
    assert_eq!(cut(Some(at("c")), None, None).await, "xedc");
    assert_eq!(cut(None, Some(at("c")), None).await, "ba");
    assert_eq!(cut(Some(at("b")), Some(at("e")), None).await, "dcb");
    assert_eq!(cut(Some(at("x") + 1), None, None).await, "");
    assert_eq!(cut(None, Some(0), None).await, "");
    // With marks and a status.
    let c = all
        .iter()
        .find(|seen| seen.message.transaction_id == "c")
        .unwrap();
    let deleted = fixture
        .store
        .delete_message(MessageAddress {
            partition: c.location.partition_number,
            transaction_id: "c".into(),
        })
        .commit_alone()
        .await;
    assert!(deleted.unwrap());
    assert_eq!(cut(Some(at("b")), Some(at("e")), None).await, "db");
    let pending = Some(MessageStatus::Pending);
    assert_eq!(cut(Some(at("b")), Some(at("e")), pending).await, "db");
}

pub(crate) async fn filters_leave_what_fits(fixture: Fixture) {
    for (queue, partition, name) in [
        ("n.t", "p", "a"),
        ("n.t", "q", "b"),
        ("n.u", "p", "c"),
        ("m.t", "p", "d"),
    ] {
        fixture.push(queue, partition, &[name]).await;
    }
    let found = async |change: fn(&mut MessageFilter)| {
        let mut filter = MessageFilter::default();
        change(&mut filter);
        let (rows, total) = list(&fixture, &filter, None, ALL).await;
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

pub(crate) async fn a_message_is_found_by_either_id(fixture: Fixture) {
    let pushed = fixture.push("q", "p", &["a", "b"]).await;
    let claimed = fixture.pop("q", "g", 1).await.unwrap();
    let by_name = address(&pushed[1]);
    let by_id = MessageAddress {
        transaction_id: pushed[1].id.to_string(),
        ..by_name.clone()
    };
    for at in [by_name, by_id] {
        let found = fixture.queue.message(&at).await.unwrap().unwrap();
        assert_eq!(found.message.message.id, pushed[1].id);
        assert_eq!(found.message.message.payload, "\"b\"");
        assert_eq!(found.message.status, MessageStatus::Pending);
        assert_eq!(found.message.readers.len(), 1);
        assert!(fixture.queue.message_exists(&at).await.unwrap());
    }
    let first = address(&pushed[0]);
    let held = fixture.queue.message(&first).await.unwrap().unwrap();
    assert_eq!(held.message.status, MessageStatus::Processing);
    fixture.say(&claimed, &["a"], AckStatus::DeadLetter).await;
    let dead = fixture.queue.message(&first).await.unwrap().unwrap();
    assert_eq!(dead.message.status, MessageStatus::DeadLetter);
    assert_eq!(dead.letters[0].error.as_deref(), Some("because"));
}

pub(crate) async fn a_message_that_is_nowhere_is_not_found(fixture: Fixture) {
    let pushed = fixture.push("q", "p", &["a"]).await;
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
        assert!(fixture.queue.message(&at).await.unwrap().is_none());
        assert!(!fixture.queue.message_exists(&at).await.unwrap());
        let deleted = fixture
            .store
            .delete_message(at.clone())
            .commit_alone()
            .await;
        assert!(!deleted.unwrap());
        assert_eq!(
            fixture
                .store
                .move_to_dead_letters(at, None, "x".into())
                .done()
                .await,
            0
        );
    }
}
