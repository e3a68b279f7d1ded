//! Acknowledgements of many messages in one call.

use wakeline_queue::{
    ack::{
        AckOutcome,
        AckStatus::{self, Completed, DeadLetter, Failed, Retry},
    },
    claim::Claim,
    store::Store,
};

use crate::{
    calls::{
        DEAD, DEAD_LETTERS, GOES_ON, LEASE, RELEASED, ack_all, ack_of, assert_about, complete,
        fail, from, make_dead, message, names, outcome, push, push_all, without_lease,
    },
    test_store::TestStore,
};

/// One call with these acknowledgements.
async fn ack_together(
    store: &dyn Store,
    claimed: &Claim,
    acks: &[(&str, AckStatus)],
) -> Vec<AckOutcome> {
    let acks = acks
        .iter()
        .map(|(transaction, status)| ack_of(claimed, transaction, *status));
    ack_all(store, acks.collect()).await
}

async fn next(store: &dyn Store) -> Vec<String> {
    let claimed = from("q").batch(9).claim(store).await;
    names(&claimed).into_iter().map(str::to_owned).collect()
}

pub(crate) async fn the_order_of_acks_in_a_call_does_not_matter(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    let claimed = from("q").batch(4).claim(&*store).await;
    let first = [("b", Completed), ("a", Completed)];
    assert_eq!(ack_together(&*store, &claimed, &first).await, [GOES_ON; 2]);
    let rest = [("d", Completed), ("c", Completed), ("a", Completed)];
    assert_eq!(
        ack_together(&*store, &claimed, &rest).await,
        [RELEASED, RELEASED, AckOutcome::AlreadyDone]
    );
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn a_failed_message_and_all_after_it_are_redelivered(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d", "e", "f"]).await;
    let claimed = from("q").batch(5).claim(&*store).await;
    let acks = [
        ("e", Completed),
        ("d", DeadLetter),
        ("c", Completed),
        ("b", Failed),
        ("a", Completed),
    ];
    assert_eq!(
        ack_together(&*store, &claimed, &acks).await,
        [RELEASED, DEAD, RELEASED, RELEASED, RELEASED]
    );
    assert_eq!(next(&*store).await, ["b", "c", "e", "f"]);
}

pub(crate) async fn a_retried_message_and_all_after_it_are_redelivered(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    let acks = [("c", Completed), ("b", Retry), ("a", Completed)];
    assert_eq!(ack_together(&*store, &claimed, &acks).await, [RELEASED; 3]);
    assert_eq!(next(&*store).await, ["b", "c"]);
}

pub(crate) async fn each_message_counts_its_own_failures(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let acks = [("a", Failed), ("b", Failed), ("c", Completed)];
    for expected in [[RELEASED; 3]; 3]
        .into_iter()
        .chain([[DEAD, DEAD, RELEASED]])
    {
        let claimed = from("q").batch(3).claim(&*store).await;
        assert_eq!(ack_together(&*store, &claimed, &acks).await, expected);
    }
    assert_eq!(from("q").nothing(&*store).await, None);
    let letters = store.database.pairs(DEAD_LETTERS).await;
    assert_eq!(letters, [(0, 4), (1, 4)]);
}

pub(crate) async fn several_partitions_are_claimed_and_acknowledged_at_once(store: TestStore) {
    for partition in ["p1", "p2", "p3"] {
        let of = |name: &str| format!("{partition}-{name}");
        push(&*store, "q", partition, &[&of("a"), &of("b")]).await;
    }
    let claimed = from("q").batch(5).partitions(3).claim(&*store).await;
    let counts = claimed.parts.iter().map(|part| part.messages.len());
    assert!(counts.eq([2, 2, 1]), "as many as were asked for");
    assert!(from("q").nothing(&*store).await.is_some(), "all are leased");
    let all = names(&claimed).into_iter().map(|name| (name, Completed));
    let all: Vec<_> = all.collect();
    assert_eq!(ack_together(&*store, &claimed, &all).await, [RELEASED; 5]);
    let rest = from("q").batch(9).partitions(9).claim(&*store).await;
    let left = format!("{}-b", claimed.parts[2].partition);
    assert_eq!(names(&rest), [left]);
}

pub(crate) async fn a_claim_has_at_most_the_requested_partitions(store: TestStore) {
    for partition in ["p1", "p2", "p3", "p4"] {
        push(&*store, "q", partition, &["a"]).await;
    }
    let two = from("q").batch(9).partitions(2);
    let first = two.claim(&*store).await;
    let second = two.claim(&*store).await;
    assert_eq!((first.parts.len(), second.parts.len()), (2, 2));
    assert_ne!(first.lease, second.lease);
    let parts = first.parts.iter().chain(&second.parts);
    let mut all: Vec<&str> = parts.map(|part| &*part.partition).collect();
    all.sort_unstable();
    assert_eq!(all, ["p1", "p2", "p3", "p4"]);
}

/// Each has its own outcome.
pub(crate) async fn acks_of_several_groups_and_lost_leases_in_one_call(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let lost = from("q").group("lost").claim(&*store).await;
    store.pass(LEASE).await;
    let held = from("q").group("held").batch(2).claim(&*store).await;
    let acks = vec![
        ack_of(&lost, "a", Completed),
        ack_of(&held, "unknown", Completed),
        ack_of(&held, "a", Completed),
        ack_of(&held, "b", Failed),
    ];
    let (lost, unknown) = (AckOutcome::LeaseLost, AckOutcome::Unknown);
    let expected = [lost, unknown, RELEASED, RELEASED];
    assert_eq!(ack_all(&*store, acks).await, expected);
    let again = from("q").group("held").batch(9).claim(&*store).await;
    assert_eq!(names(&again), ["b"]);
    let again = from("q").group("lost").batch(9).claim(&*store).await;
    assert_eq!(names(&again), ["a", "b"]);
}

pub(crate) async fn a_message_outside_of_the_claim_cannot_be_acknowledged(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    for status in [Completed, Failed, DeadLetter] {
        let refused = outcome(&*store, &claimed, "b", status).await;
        assert_eq!(refused, AckOutcome::Unknown);
    }
    assert_eq!(complete(&*store, &claimed, "a").await, RELEASED);
    assert_eq!(next(&*store).await, ["b"]);
}

pub(crate) async fn a_nack_without_a_lease_ends_no_lease(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    let unfenced = without_lease(&claimed);
    for status in [Failed, Retry, DeadLetter] {
        let refused = outcome(&*store, &unfenced, "a", status).await;
        assert_eq!(refused, AckOutcome::LeaseLost);
    }
    assert_eq!(complete(&*store, &claimed, "a").await, GOES_ON);
    store.pass(LEASE).await;
    assert_eq!(
        make_dead(&*store, &unfenced, "b").await,
        AckOutcome::Done {
            lease_released: false,
            dead: true,
        }
    );
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn a_lease_can_outlast_its_completed_batch(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    let mut ack = ack_of(&claimed, "a", Completed);
    ack.keeps_lease = true;
    assert_eq!(ack_all(&*store, vec![ack]).await, [GOES_ON]);
    assert_about(from("q").nothing(&*store).await, LEASE);
    store.pass(LEASE).await;
    assert_eq!(next(&*store).await, ["b"]);
}

pub(crate) async fn the_message_id_is_the_default_transaction_id(store: TestStore) {
    let mut new = message("q", "p", "");
    new.transaction_id = None;
    let pushed = push_all(&*store, vec![new.clone(), new.clone()]).await;
    let ids: Vec<String> = pushed.into_iter().map(|p| p.transaction_id).collect();
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&claimed), ids);
    assert_ne!(ids[0], ids[1]);
    // The same id given by a producer is that message.
    new.transaction_id = Some(ids[1].clone());
    let again = push_all(&*store, vec![new]).await.remove(0);
    assert!(again.duplicate);
    assert_eq!(again.id.to_string(), ids[1]);
    assert_eq!(fail(&*store, &claimed, &ids[1]).await, RELEASED);
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(complete(&*store, &claimed, &ids[0]).await, GOES_ON);
    assert_eq!(make_dead(&*store, &claimed, &ids[1]).await, DEAD);
    assert_eq!(from("q").nothing(&*store).await, None);
}
