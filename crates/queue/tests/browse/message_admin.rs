use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    browse::{MessageAddress, MessageStatus, RetryOutcome},
    queue_admin::GroupScope,
};
use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, QUEUE_MODE, ack, address, ids, of_queue};

pub(crate) async fn a_deleted_message_is_gone_for_everyone(fixture: Fixture) {
    let pushed = fixture.push_together("q", "p", &["a", "b", "c", "d"]).await;
    fixture.complete("q", "early", 1).await;
    for index in [0, 1, 3] {
        let at = address(&pushed[index]);
        assert!(fixture.store.delete_message(at.clone()).done().await);
        assert!(!fixture.store.delete_message(at.clone()).done().await);
        assert!(fixture.queue.message(&at).await.unwrap().is_none());
    }
    for group in ["early", "late", QUEUE_MODE] {
        assert_eq!(fixture.complete("q", group, 9).await, ["c"], "{group}");
        assert!(fixture.pop("q", group, 9).await.is_none(), "{group}");
    }
    let left = fixture.queue.messages(&of_queue("q"), None, ALL).await;
    assert_eq!(left.unwrap().total, 1);
}

pub(crate) async fn a_deleted_message_may_be_pushed_again(fixture: Fixture) {
    let pushed = fixture.push("q", "p", &["a"]).await;
    let deleted = fixture
        .store
        .delete_message(address(&pushed[0]))
        .commit_alone()
        .await;
    assert!(deleted.unwrap());
    let again = fixture.push("q", "p", &["a"]).await;
    assert!(!again[0].duplicate);
    assert_ne!(again[0].id, pushed[0].id);
    let found = fixture.queue.message(&address(&again[0])).await;
    assert_eq!(found.unwrap().unwrap().message.message.id, again[0].id);
    assert_eq!(fixture.complete("q", "g", 9).await, ["a"]);
}

pub(crate) async fn a_retried_letter_comes_to_its_group_only(fixture: Fixture) {
    let pushed = fixture.push("q", "p", &["a", "b"]).await;
    assert_eq!(fixture.make_next_dead_letter("q", "g").await, "a");
    assert_eq!(fixture.complete("q", "other", 9).await, ["a", "b"]);
    assert_eq!(fixture.complete("q", "g", 9).await, ["b"]);
    let at = address(&pushed[0]);
    let door = fixture.door();
    let retried = door.retry(&at).await.unwrap();
    let [RetryOutcome::Done { id, transaction_id }] = &retried[..] else {
        panic!("{retried:?}");
    };
    assert_ne!(*id, pushed[0].id);
    // The other group has the old one under its transaction id.
    assert_eq!(*transaction_id, id.to_string());
    let letters = fixture.queue.dead_letters(&of_queue("q"), ALL).await;
    assert_eq!(letters.unwrap().total, 0);
    assert!(fixture.pop("q", "other", 9).await.is_none());
    let again = fixture.pop("q", "g", 9).await.unwrap();
    assert_eq!(ids(&again), [transaction_id.as_str()]);
    assert_eq!(again.messages().next().unwrap().payload, "\"a\"");
    fixture
        .say(&again, &[transaction_id], AckStatus::Completed)
        .await;
    assert!(fixture.pop("q", "g", 9).await.is_none());
    assert_eq!(door.retry(&at).await.unwrap(), []);
}

pub(crate) async fn a_retried_letter_keeps_its_transaction_id_if_it_can(fixture: Fixture) {
    let pushed = fixture.push("q", "p", &["a", "b"]).await;
    assert_eq!(fixture.make_next_dead_letter("q", "g").await, "a");
    let at = address(&pushed[0]);
    let retried = fixture.door().retry(&at).await.unwrap();
    let [RetryOutcome::Done { id, transaction_id }] = &retried[..] else {
        panic!("{retried:?}");
    };
    assert_eq!(transaction_id, "a");
    let found = fixture.queue.message(&at).await.unwrap().unwrap();
    assert_eq!(found.message.message.id, *id);
    assert_eq!(found.message.status, MessageStatus::Pending);
    let claimed = fixture.pop("q", "g", 9).await.unwrap();
    assert_eq!(ids(&claimed), ["b", "a"]);
    // What it is acknowledged as is the new one.
    fixture.say(&claimed, &["a"], AckStatus::Completed).await;
    assert!(fixture.pop("q", "g", 9).await.is_none());
    assert_eq!(
        ack(&fixture, &at, "g", AckStatus::Completed).await,
        AckOutcome::AlreadyDone
    );
    assert!(fixture.push("q", "p", &["a"]).await[0].duplicate);
}

pub(crate) async fn a_letter_is_found_by_either_id(fixture: Fixture) {
    let pushed = fixture.push("q", "p", &["a", "b"]).await;
    let claimed = fixture.pop("q", "g", 9).await.unwrap();
    let by_id = pushed[0].id.to_string();
    fixture
        .say(&claimed, &[&by_id], AckStatus::DeadLetter)
        .await;
    let at = address(&pushed[0]);
    let found = fixture.queue.dead_letters_of(&at).await.unwrap();
    assert_eq!(found.len(), 1);
    let other = MessageAddress {
        transaction_id: by_id,
        ..at.clone()
    };
    let found = fixture.queue.dead_letters_of(&other).await.unwrap();
    assert_eq!(found[0].message.transaction_id, "a");
    assert!(fixture.store.delete_message(at).done().await);
    let letters = fixture.queue.dead_letters(&of_queue("q"), ALL).await;
    assert_eq!(letters.unwrap().total, 0);
}

pub(crate) async fn nothing_is_deleted_where_nothing_is(fixture: Fixture) {
    let nowhere = MessageAddress {
        partition: 77,
        transaction_id: wakeline_queue::id::message(0, 77, 0).to_string(),
    };
    let deleted = fixture.store.delete_message(nowhere).commit_alone().await;
    assert!(!deleted.unwrap());
}

pub(crate) async fn a_letter_of_a_deleted_group_stays(fixture: Fixture) {
    let pushed = fixture.push("q", "p", &["a"]).await;
    fixture.make_next_dead_letter("q", "g").await;
    let scope = GroupScope {
        group: "g".into(),
        queue: None,
        partition: None,
    };
    fixture.store.delete_group(scope, true).done().await;
    let retried = fixture.door().retry(&address(&pushed[0])).await.unwrap();
    assert_eq!(retried, [RetryOutcome::NoGroup]);
    let letters = fixture.queue.dead_letters(&of_queue("q"), ALL).await;
    assert_eq!(letters.unwrap().total, 1);
}

pub(crate) async fn a_message_moved_to_the_dead_letters_is_a_letter_of_its_waiting_groups(
    fixture: Fixture,
) {
    let pushed = fixture.push_together("q", "p", &["a", "b", "c"]).await;
    let at = address(&pushed[1]);
    let move_to_dead_letters = async |group: Option<&str>| {
        let group = group.map(Into::into);
        let buried = fixture
            .store
            .move_to_dead_letters(at.clone(), group, "why".into())
            .commit_alone()
            .await;
        buried.unwrap()
    };
    assert_eq!(move_to_dead_letters(None).await, 0, "nobody reads it yet");
    fixture.complete("q", "done", 9).await;
    for group in ["one", "two"] {
        fixture.complete("q", group, 1).await;
    }
    assert_eq!(move_to_dead_letters(Some("done")).await, 0);
    assert_eq!(move_to_dead_letters(Some("one")).await, 1);
    assert_eq!(move_to_dead_letters(None).await, 1, "the other one");
    assert_eq!(move_to_dead_letters(None).await, 0);
    let found = fixture.queue.dead_letters_of(&at).await.unwrap();
    let of: Vec<_> = found
        .iter()
        .map(|letter| (&*letter.group, letter.error.as_deref()))
        .collect();
    assert_eq!(of, [("one", Some("why")), ("two", Some("why"))]);
    assert_eq!(found[0].message.payload, "\"b\"");
    for group in ["one", "two"] {
        assert_eq!(fixture.complete("q", group, 9).await, ["c"]);
    }
    assert_eq!(fixture.complete("q", "late", 9).await, ["a", "b", "c"]);
}

pub(crate) async fn a_leased_message_is_not_moved_to_the_dead_letters(fixture: Fixture) {
    let pushed = fixture.push_together("q", "p", &["a", "b"]).await;
    let held = fixture.pop("q", "g", 1).await.unwrap();
    let move_to_dead_letters = async |index: usize| {
        let at: MessageAddress = address(&pushed[index]);
        fixture
            .store
            .move_to_dead_letters(at, None, "why".into())
            .done()
            .await
    };
    assert_eq!(move_to_dead_letters(0).await, 0);
    assert_eq!(move_to_dead_letters(1).await, 1);
    fixture.say(&held, &["a"], AckStatus::Completed).await;
    assert!(fixture.pop("q", "g", 9).await.is_none());
}
