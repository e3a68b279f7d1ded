use wakeline_queue::{
    ack::{Outcome, Status},
    browse::{Address, MessageStatus, Retried},
    manage::GroupScope,
};
use wakeline_testkit::CommitAlone;

use crate::ground::{ALL, Ground, QUEUE_MODE, ack, address, ids, of_queue};

pub(crate) async fn a_deleted_message_is_gone_for_everyone(ground: Ground) {
    let pushed = ground.push_together("q", "p", &["a", "b", "c", "d"]).await;
    ground.complete("q", "early", 1).await;
    for index in [0, 1, 3] {
        let at = address(&pushed[index]);
        assert!(
            ground
                .store
                .delete_message(at.clone())
                .commit_alone()
                .await
                .unwrap()
        );
        assert!(
            !ground
                .store
                .delete_message(at.clone())
                .commit_alone()
                .await
                .unwrap()
        );
        assert!(ground.browse().message(&at).await.unwrap().is_none());
    }
    for group in ["early", "late", QUEUE_MODE] {
        assert_eq!(ground.complete("q", group, 9).await, ["c"], "{group}");
        assert!(ground.pop("q", group, 9).await.is_none(), "{group}");
    }
    let left = ground.browse().messages(&of_queue("q"), None, ALL).await;
    assert_eq!(left.unwrap().total, 1);
}

pub(crate) async fn a_deleted_message_may_be_pushed_again(ground: Ground) {
    let pushed = ground.push("q", "p", &["a"]).await;
    let deleted = ground
        .store
        .delete_message(address(&pushed[0]))
        .commit_alone()
        .await;
    assert!(deleted.unwrap());
    let recheck_after = ground.push("q", "p", &["a"]).await;
    assert!(!recheck_after[0].duplicate);
    assert_ne!(recheck_after[0].id, pushed[0].id);
    let found = ground.browse().message(&address(&recheck_after[0])).await;
    assert_eq!(found.unwrap().unwrap().seen.message.id, recheck_after[0].id);
    assert_eq!(ground.complete("q", "g", 9).await, ["a"]);
}

pub(crate) async fn a_retried_letter_comes_to_its_group_only(ground: Ground) {
    let pushed = ground.push("q", "p", &["a", "b"]).await;
    assert_eq!(ground.bury_next("q", "g").await, "a");
    assert_eq!(ground.complete("q", "other", 9).await, ["a", "b"]);
    assert_eq!(ground.complete("q", "g", 9).await, ["b"]);
    let at = address(&pushed[0]);
    let door = ground.door();
    let retried = door.retry(&at).await.unwrap();
    let [Retried::Done { id, transaction_id }] = &retried[..] else {
        panic!("{retried:?}");
    };
    assert_ne!(*id, pushed[0].id);
    // The other group has the old one under its transaction id.
    assert_eq!(*transaction_id, id.to_string());
    let letters = ground.browse().dead_letters(&of_queue("q"), ALL).await;
    assert_eq!(letters.unwrap().total, 0);
    assert!(ground.pop("q", "other", 9).await.is_none());
    let recheck_after = ground.pop("q", "g", 9).await.unwrap();
    assert_eq!(ids(&recheck_after), [transaction_id.as_str()]);
    assert_eq!(recheck_after.messages().next().unwrap().payload, "\"a\"");
    ground
        .say(&recheck_after, &[transaction_id], Status::Completed)
        .await;
    assert!(ground.pop("q", "g", 9).await.is_none());
    assert_eq!(door.retry(&at).await.unwrap(), []);
}

pub(crate) async fn a_retried_letter_keeps_its_transaction_id_if_it_can(ground: Ground) {
    let pushed = ground.push("q", "p", &["a", "b"]).await;
    assert_eq!(ground.bury_next("q", "g").await, "a");
    let at = address(&pushed[0]);
    let retried = ground.door().retry(&at).await.unwrap();
    let [Retried::Done { id, transaction_id }] = &retried[..] else {
        panic!("{retried:?}");
    };
    assert_eq!(transaction_id, "a");
    let found = ground.browse().message(&at).await.unwrap().unwrap();
    assert_eq!(found.seen.message.id, *id);
    assert_eq!(found.seen.status, MessageStatus::Pending);
    let claimed = ground.pop("q", "g", 9).await.unwrap();
    assert_eq!(ids(&claimed), ["b", "a"]);
    // What it is acknowledged as is the new one.
    ground.say(&claimed, &["a"], Status::Completed).await;
    assert!(ground.pop("q", "g", 9).await.is_none());
    assert_eq!(
        ack(&ground, &at, "g", Status::Completed).await,
        Outcome::AlreadyDone
    );
    assert!(ground.push("q", "p", &["a"]).await[0].duplicate);
}

pub(crate) async fn a_letter_is_found_by_either_id(ground: Ground) {
    let pushed = ground.push("q", "p", &["a", "b"]).await;
    let claimed = ground.pop("q", "g", 9).await.unwrap();
    let by_id = pushed[0].id.to_string();
    ground.say(&claimed, &[&by_id], Status::DeadLetter).await;
    let at = address(&pushed[0]);
    let found = ground.browse().dead_letters_of(&at).await.unwrap();
    assert_eq!(found.len(), 1);
    let other = Address {
        transaction_id: by_id,
        ..at.clone()
    };
    let found = ground.browse().dead_letters_of(&other).await.unwrap();
    assert_eq!(found[0].message.transaction_id, "a");
    assert!(
        ground
            .store
            .delete_message(at)
            .commit_alone()
            .await
            .unwrap()
    );
    let letters = ground.browse().dead_letters(&of_queue("q"), ALL).await;
    assert_eq!(letters.unwrap().total, 0);
}

pub(crate) async fn nothing_is_deleted_where_nothing_is(ground: Ground) {
    let nowhere = Address {
        partition: 77,
        transaction_id: wakeline_queue::id::message(0, 77, 0).to_string(),
    };
    let deleted = ground.store.delete_message(nowhere).commit_alone().await;
    assert!(!deleted.unwrap());
}

pub(crate) async fn a_letter_of_a_deleted_group_stays(ground: Ground) {
    let pushed = ground.push("q", "p", &["a"]).await;
    ground.bury_next("q", "g").await;
    let scope = GroupScope {
        group: "g".into(),
        queue: None,
        partition: None,
    };
    ground
        .store
        .delete_group(scope, true)
        .commit_alone()
        .await
        .unwrap();
    let retried = ground.door().retry(&address(&pushed[0])).await.unwrap();
    assert_eq!(retried, [Retried::NoGroup]);
    let letters = ground.browse().dead_letters(&of_queue("q"), ALL).await;
    assert_eq!(letters.unwrap().total, 1);
}

pub(crate) async fn a_buried_message_is_a_letter_of_who_waits_for_it(ground: Ground) {
    let pushed = ground.push_together("q", "p", &["a", "b", "c"]).await;
    let at = address(&pushed[1]);
    let bury = async |group: Option<&str>| {
        let group = group.map(Into::into);
        let buried = ground
            .store
            .bury(at.clone(), group, "why".into())
            .commit_alone()
            .await;
        buried.unwrap()
    };
    assert_eq!(bury(None).await, 0, "nobody reads it yet");
    ground.complete("q", "done", 9).await;
    for group in ["one", "two"] {
        ground.complete("q", group, 1).await;
    }
    assert_eq!(bury(Some("done")).await, 0);
    assert_eq!(bury(Some("one")).await, 1);
    assert_eq!(bury(None).await, 1, "the other one");
    assert_eq!(bury(None).await, 0);
    let found = ground.browse().dead_letters_of(&at).await.unwrap();
    let of: Vec<_> = found
        .iter()
        .map(|letter| (&*letter.group, letter.error.as_deref()))
        .collect();
    assert_eq!(of, [("one", Some("why")), ("two", Some("why"))]);
    assert_eq!(found[0].message.payload, "\"b\"");
    for group in ["one", "two"] {
        assert_eq!(ground.complete("q", group, 9).await, ["c"]);
    }
    assert_eq!(ground.complete("q", "late", 9).await, ["a", "b", "c"]);
}

pub(crate) async fn what_is_in_somebodys_hands_is_not_buried(ground: Ground) {
    let pushed = ground.push_together("q", "p", &["a", "b"]).await;
    let held = ground.pop("q", "g", 1).await.unwrap();
    let bury = async |index: usize| {
        let at: Address = address(&pushed[index]);
        ground
            .store
            .bury(at, None, "why".into())
            .commit_alone()
            .await
            .unwrap()
    };
    assert_eq!(bury(0).await, 0);
    assert_eq!(bury(1).await, 1);
    ground.say(&held, &["a"], Status::Completed).await;
    assert!(ground.pop("q", "g", 9).await.is_none());
}
