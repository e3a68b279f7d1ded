use wakeline_queue::{
    ack::AckOutcome,
    browse::{MessageAddress, MessageStatus, QUEUE_MODE, RetryOutcome},
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{
        ALL, DEAD, address, complete, consume, from, make_dead, make_next_dead, names, of_queue,
        push_each, push_together, scope, without_lease,
    },
    test_store::TestStore,
};

pub(crate) async fn a_deleted_message_is_gone_for_all_groups(store: TestStore) {
    let door = store.queue();
    let pushed = push_together(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    consume(&*store, "q", "early", 1).await;
    for index in [0, 1, 3] {
        let at = address(&pushed[index]);
        assert!(store.delete_message(at.clone()).done().await);
        assert!(!store.delete_message(at.clone()).done().await);
        assert!(door.message(&at).await.unwrap().is_none());
    }
    for group in ["early", "late", QUEUE_MODE] {
        assert_eq!(consume(&*store, "q", group, 9).await, ["c"], "{group}");
        from("q").group(group).batch(9).nothing(&*store).await;
    }
    let left = door.messages(&of_queue("q"), None, ALL).await;
    assert_eq!(left.unwrap().total, 1);
}

pub(crate) async fn a_deleted_message_may_be_pushed_again(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a"]).await;
    assert!(store.delete_message(address(&pushed[0])).done().await);
    let again = push_each(&*store, "q", "p", &["a"]).await;
    assert!(!again[0].duplicate);
    assert_ne!(again[0].id, pushed[0].id);
    let found = door.message(&address(&again[0])).await;
    assert_eq!(found.unwrap().unwrap().message.message.id, again[0].id);
    assert_eq!(consume(&*store, "q", "g", 9).await, ["a"]);
}

pub(crate) async fn a_retried_dead_letter_is_delivered_to_its_group_only(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a", "b"]).await;
    assert_eq!(make_next_dead(&*store, "q", "g").await, "a");
    assert_eq!(consume(&*store, "q", "other", 9).await, ["a", "b"]);
    assert_eq!(consume(&*store, "q", "g", 9).await, ["b"]);
    let at = address(&pushed[0]);
    let retried = door.retry(&at).await.unwrap();
    let [RetryOutcome::Done { id, transaction_id }] = &retried[..] else {
        panic!("{retried:?}");
    };
    assert_ne!(*id, pushed[0].id);
    // The other group has the old one under its transaction id.
    assert_eq!(*transaction_id, id.to_string());
    let letters = door.dead_letters(&of_queue("q"), ALL).await;
    assert_eq!(letters.unwrap().total, 0);
    from("q").group("other").batch(9).nothing(&*store).await;
    let again = from("q").batch(9).claim_soon(&*store).await;
    assert_eq!(names(&again), [transaction_id.as_str()]);
    assert_eq!(again.messages().next().unwrap().payload, "\"a\"");
    assert!(complete(&*store, &again, transaction_id).await.is_success());
    from("q").batch(9).nothing(&*store).await;
    assert_eq!(door.retry(&at).await.unwrap(), []);
}

pub(crate) async fn a_retried_dead_letter_keeps_its_transaction_id_if_no_other_group_reads(
    store: TestStore,
) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a", "b"]).await;
    assert_eq!(make_next_dead(&*store, "q", "g").await, "a");
    let at = address(&pushed[0]);
    let retried = door.retry(&at).await.unwrap();
    let [RetryOutcome::Done { id, transaction_id }] = &retried[..] else {
        panic!("{retried:?}");
    };
    assert_eq!(transaction_id, "a");
    let found = door.message(&at).await.unwrap().unwrap();
    assert_eq!(found.message.message.id, *id);
    assert_eq!(found.message.status, MessageStatus::Pending);
    let claimed = from("q").batch(9).claim_soon(&*store).await;
    assert_eq!(names(&claimed), ["b", "a"]);
    // The transaction id names the new message.
    assert!(complete(&*store, &claimed, "a").await.is_success());
    from("q").batch(9).nothing(&*store).await;
    let again = complete(&*store, &without_lease(&claimed), "a").await;
    assert_eq!(again, AckOutcome::AlreadyDone);
    assert!(push_each(&*store, "q", "p", &["a"]).await[0].duplicate);
}

pub(crate) async fn a_dead_letter_is_found_by_either_id(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(9).claim_soon(&*store).await;
    let by_id = pushed[0].id.to_string();
    assert_eq!(make_dead(&*store, &claimed, &by_id).await, DEAD);
    let at = address(&pushed[0]);
    let found = door.dead_letters_of(&at).await.unwrap();
    assert_eq!(found.len(), 1);
    let other = MessageAddress {
        transaction_id: by_id,
        ..at.clone()
    };
    let found = door.dead_letters_of(&other).await.unwrap();
    assert_eq!(found[0].message.transaction_id, "a");
    assert!(store.delete_message(at).done().await);
    let letters = door.dead_letters(&of_queue("q"), ALL).await;
    assert_eq!(letters.unwrap().total, 0);
}

pub(crate) async fn deleting_an_unknown_message_changes_nothing(store: TestStore) {
    let nowhere = MessageAddress {
        partition: 77,
        transaction_id: wakeline_queue::id::message(0, 77, 0).to_string(),
    };
    assert!(!store.delete_message(nowhere).done().await);
}

pub(crate) async fn a_dead_letter_outlives_its_group(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a"]).await;
    make_next_dead(&*store, "q", "g").await;
    store.delete_group(scope(None, None), true).done().await;
    let retried = door.retry(&address(&pushed[0])).await.unwrap();
    assert_eq!(retried, [RetryOutcome::NoGroup]);
    let letters = door.dead_letters(&of_queue("q"), ALL).await;
    assert_eq!(letters.unwrap().total, 1);
}

pub(crate) async fn a_moved_message_is_a_dead_letter_of_each_group_that_has_not_consumed_it(
    store: TestStore,
) {
    let door = store.queue();
    let pushed = push_together(&*store, "q", "p", &["a", "b", "c"]).await;
    let at = address(&pushed[1]);
    let move_to_dead_letters = async |group: Option<&str>| {
        let group = group.map(Into::into);
        let moved = store.move_to_dead_letters(at.clone(), group, "why".into());
        moved.done().await
    };
    assert_eq!(move_to_dead_letters(None).await, 0, "no group reads it yet");
    consume(&*store, "q", "done", 9).await;
    for group in ["one", "two"] {
        consume(&*store, "q", group, 1).await;
    }
    assert_eq!(move_to_dead_letters(Some("done")).await, 0);
    assert_eq!(move_to_dead_letters(Some("one")).await, 1);
    assert_eq!(move_to_dead_letters(None).await, 1, "the other one");
    assert_eq!(move_to_dead_letters(None).await, 0);
    let found = door.dead_letters_of(&at).await.unwrap();
    let letters = found.iter();
    let letters = letters.map(|letter| (&*letter.group, letter.error.as_deref()));
    assert!(letters.eq([("one", Some("why")), ("two", Some("why"))]));
    assert_eq!(found[0].message.payload, "\"b\"");
    for group in ["one", "two"] {
        assert_eq!(consume(&*store, "q", group, 9).await, ["c"]);
    }
    assert_eq!(consume(&*store, "q", "late", 9).await, ["a", "b", "c"]);
}

pub(crate) async fn a_leased_message_is_not_moved_to_the_dead_letters(store: TestStore) {
    let pushed = push_together(&*store, "q", "p", &["a", "b"]).await;
    let held = from("q").claim(&*store).await;
    let move_to_dead_letters = async |index: usize| {
        let moved = store.move_to_dead_letters(address(&pushed[index]), None, "why".into());
        moved.done().await
    };
    assert_eq!(move_to_dead_letters(0).await, 0);
    assert_eq!(move_to_dead_letters(1).await, 1);
    assert!(complete(&*store, &held, "a").await.is_success());
    from("q").batch(9).nothing(&*store).await;
}
