//! What one call says of many messages.

use wakeline_queue::{
    ack::{Ack, AckOutcome, AckStatus},
    claim::Claim,
    store::Store,
};

use crate::{
    calls::{
        GOES_ON, LEASE, RELEASED, apply, assert_about, from, names, outcome, push, say, say_all,
    },
    test_store::TestStore,
};

fn acks(claimed: &Claim, said: &[(&str, AckStatus)]) -> Vec<Ack> {
    said.iter()
        .map(|(transaction, status)| say(claimed, transaction, *status))
        .collect()
}

async fn next(store: &dyn Store) -> Vec<String> {
    let claimed = from("q").batch(9).claim(store).await;
    names(&claimed).into_iter().map(str::to_owned).collect()
}

pub(crate) async fn the_order_within_a_call_does_not_matter(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    let claimed = from("q").batch(4).claim(&*store).await;
    let said = ["b", "a"].map(|name| (name, AckStatus::Completed));
    assert_eq!(say_all(&*store, acks(&claimed, &said)).await, [GOES_ON; 2]);
    let said = ["d", "c", "a"].map(|name| (name, AckStatus::Completed));
    assert_eq!(
        say_all(&*store, acks(&claimed, &said)).await,
        [RELEASED, RELEASED, AckOutcome::AlreadyDone]
    );
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn what_failed_and_what_follows_it_comes_again(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d", "e", "f"]).await;
    let claimed = from("q").batch(5).claim(&*store).await;
    let said = [
        ("e", AckStatus::Completed),
        ("d", AckStatus::DeadLetter),
        ("c", AckStatus::Completed),
        ("b", AckStatus::Failed),
        ("a", AckStatus::Completed),
    ];
    let dead = AckOutcome::Done {
        lease_released: true,
        dead: true,
    };
    assert_eq!(
        say_all(&*store, acks(&claimed, &said)).await,
        [RELEASED, dead, RELEASED, RELEASED, RELEASED]
    );
    assert_eq!(next(&*store).await, ["b", "c", "e", "f"]);
}

pub(crate) async fn retry_holds_up_what_follows_it_too(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    let said = [
        ("c", AckStatus::Completed),
        ("b", AckStatus::Retry),
        ("a", AckStatus::Completed),
    ];
    assert_eq!(say_all(&*store, acks(&claimed, &said)).await, [RELEASED; 3]);
    assert_eq!(next(&*store).await, ["b", "c"]);
}

pub(crate) async fn each_failed_one_counts_for_itself(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    for _ in 0..3 {
        let claimed = from("q").batch(3).claim(&*store).await;
        let said = [
            ("a", AckStatus::Failed),
            ("b", AckStatus::Failed),
            ("c", AckStatus::Completed),
        ];
        assert_eq!(say_all(&*store, acks(&claimed, &said)).await, [RELEASED; 3]);
    }
    let claimed = from("q").batch(3).claim(&*store).await;
    let said = [
        ("a", AckStatus::Failed),
        ("b", AckStatus::Failed),
        ("c", AckStatus::Completed),
    ];
    let outcomes = say_all(&*store, acks(&claimed, &said)).await;
    let dead = AckOutcome::Done {
        lease_released: true,
        dead: true,
    };
    assert_eq!(outcomes, [dead, dead, RELEASED]);
    assert_eq!(from("q").nothing(&*store).await, None);
    let letters = "SELECT position, CAST(failures AS bigint) FROM queue_dead_letter ORDER BY 1";
    assert_eq!(store.database.pairs(letters).await, [(0, 4), (1, 4)]);
}

pub(crate) async fn several_partitions_are_claimed_and_acknowledged_at_once(store: TestStore) {
    for partition in ["p1", "p2", "p3"] {
        let of = |name: &str| format!("{partition}-{name}");
        push(&*store, "q", partition, &[&of("a"), &of("b")]).await;
    }
    let claimed = from("q").batch(5).partitions(3).claim(&*store).await;
    let counts: Vec<usize> = claimed
        .parts
        .iter()
        .map(|part| part.messages.len())
        .collect();
    assert_eq!(counts, [2, 2, 1], "as many as were asked for");
    assert!(from("q").nothing(&*store).await.is_some(), "all are leased");
    let all: Vec<Ack> = claimed
        .messages()
        .map(|message| say(&claimed, &message.transaction_id, AckStatus::Completed))
        .collect();
    assert_eq!(say_all(&*store, all).await, [RELEASED; 5]);
    let rest = from("q").batch(9).partitions(9).claim(&*store).await;
    let left = format!("{}-b", claimed.parts[2].partition);
    assert_eq!(names(&rest), [left]);
}

pub(crate) async fn partitions_of_a_claim_are_not_more_than_asked_for(store: TestStore) {
    for partition in ["p1", "p2", "p3", "p4"] {
        push(&*store, "q", partition, &["a"]).await;
    }
    let two = from("q").batch(9).partitions(2);
    let first = two.claim(&*store).await;
    let second = two.claim(&*store).await;
    assert_eq!((first.parts.len(), second.parts.len()), (2, 2));
    assert_ne!(first.lease, second.lease);
    let mut all: Vec<&str> = first
        .parts
        .iter()
        .chain(&second.parts)
        .map(|p| &*p.partition)
        .collect();
    all.sort_unstable();
    assert_eq!(all, ["p1", "p2", "p3", "p4"]);
}

/// One answer for each, whatever becomes of the others.
pub(crate) async fn groups_and_lost_leases_in_one_call(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let lost = from("q").group("lost").claim(&*store).await;
    store.pass(LEASE).await;
    let held = from("q").group("held").batch(2).claim(&*store).await;
    let said = vec![
        say(&lost, "a", AckStatus::Completed),
        say(&held, "unknown", AckStatus::Completed),
        say(&held, "a", AckStatus::Completed),
        say(&held, "b", AckStatus::Failed),
    ];
    assert_eq!(
        say_all(&*store, said).await,
        [
            AckOutcome::LeaseLost,
            AckOutcome::Unknown,
            RELEASED,
            RELEASED
        ]
    );
    let again = from("q").group("held").batch(9).claim(&*store).await;
    assert_eq!(names(&again), ["b"]);
    let again = from("q").group("lost").batch(9).claim(&*store).await;
    assert_eq!(names(&again), ["a", "b"]);
}

pub(crate) async fn nobody_speaks_of_what_it_was_not_given(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    for status in [
        AckStatus::Completed,
        AckStatus::Failed,
        AckStatus::DeadLetter,
    ] {
        assert_eq!(
            outcome(&*store, &claimed, "b", status).await,
            AckOutcome::Unknown
        );
    }
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        RELEASED
    );
    assert_eq!(next(&*store).await, ["b"]);
}

/// A nack without a lease ends nobody's.
pub(crate) async fn without_a_lease_nobody_is_interrupted(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    let unfenced = Claim {
        lease: None,
        ..claimed.clone()
    };
    for status in [AckStatus::Failed, AckStatus::Retry, AckStatus::DeadLetter] {
        assert_eq!(
            outcome(&*store, &unfenced, "a", status).await,
            AckOutcome::LeaseLost
        );
    }
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        GOES_ON
    );
    store.pass(LEASE).await;
    assert_eq!(
        outcome(&*store, &unfenced, "b", AckStatus::DeadLetter).await,
        AckOutcome::Done {
            lease_released: false,
            dead: true,
        }
    );
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn a_lease_can_go_on_when_all_is_done(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    let mut ack = say(&claimed, "a", AckStatus::Completed);
    ack.keeps_lease = true;
    assert_eq!(say_all(&*store, vec![ack]).await, [GOES_ON]);
    assert_about(from("q").nothing(&*store).await, LEASE);
    store.pass(LEASE).await;
    assert_eq!(next(&*store).await, ["b"]);
}

pub(crate) async fn a_message_without_a_transaction_id_has_its_own(store: TestStore) {
    let mut new = crate::calls::message("q", "p", "");
    new.transaction_id = None;
    let pushes = vec![new.clone(), new.clone()];
    let pushing = wakeline_queue::write_batch::WriteBatch {
        pushes,
        ..Default::default()
    };
    let pushed = apply(&*store, pushing).await.pushed;
    let ids: Vec<String> = pushed
        .into_iter()
        .map(|p| p.unwrap().transaction_id)
        .collect();
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&claimed), ids);
    assert_ne!(ids[0], ids[1]);
    // The same id given by a producer is that message.
    new.transaction_id = Some(ids[1].clone());
    let again = crate::calls::push_all(&*store, vec![new]).await.remove(0);
    assert_eq!(
        (again.duplicate, again.id.to_string()),
        (true, ids[1].clone())
    );
    assert_eq!(
        outcome(&*store, &claimed, &ids[1], AckStatus::Failed).await,
        RELEASED
    );
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(
        outcome(&*store, &claimed, &ids[0], AckStatus::Completed).await,
        GOES_ON
    );
    assert_eq!(
        outcome(&*store, &claimed, &ids[1], AckStatus::DeadLetter).await,
        AckOutcome::Done {
            lease_released: true,
            dead: true,
        }
    );
    assert_eq!(from("q").nothing(&*store).await, None);
}
