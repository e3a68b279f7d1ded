//! Write batches that are all or nothing.

use futures_util::future::join_all;
use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, AckOutcome, AckStatus},
    claim::Claim,
    message::{NewMessage, PushRefusal},
    store::Store,
    write_batch::{BatchOutcome, Rejection, WriteBatch},
};

use crate::{
    calls::{
        GOES_ON, LEASE, RELEASED, ack_of, apply, complete, configure, from, message, names, push,
        push_all, whole_batch,
    },
    races::race,
    test_store::TestStore,
};

async fn whole(store: &dyn Store, acks: Vec<Ack>, pushes: Vec<NewMessage>) -> BatchOutcome {
    apply(store, whole_batch(acks, pushes)).await
}

fn done(claimed: &Claim, transaction: &str) -> Ack {
    ack_of(claimed, transaction, AckStatus::Completed)
}

async fn is_empty(store: &dyn Store, queue: &str) {
    assert_eq!(from(queue).nothing(store).await, None, "{queue}");
}

fn rejected(rejection: Rejection) -> BatchOutcome {
    BatchOutcome {
        rejection: Some(rejection),
        ..BatchOutcome::default()
    }
}

pub(crate) async fn an_ack_and_pushes_are_done_together(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let pushes = vec![message("r", "p", "x"), message("s", "p", "y")];
    let done = whole(&*store, vec![done(&claimed, "a")], pushes).await;
    assert_eq!((done.rejection, &*done.acked), (None, &[RELEASED][..]));
    let mut pushed = done.pushed.into_iter().map(Result::unwrap);
    assert!(pushed.all(|pushed| !pushed.duplicate));
    is_empty(&*store, "q").await;
    assert_eq!(names(&from("r").claim(&*store).await), ["x"]);
    assert_eq!(names(&from("s").claim(&*store).await), ["y"]);
}

pub(crate) async fn a_lost_lease_rejects_the_whole_batch(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q2", "p", &["b"]).await;
    let lost = from("q").claim(&*store).await;
    store.pass(LEASE).await;
    let held = from("q2").claim(&*store).await;
    let acks = vec![done(&held, "b"), done(&lost, "a")];
    let refused = whole(&*store, acks, vec![message("r", "p", "x")]).await;
    let lost = Rejection::Ack(1, AckOutcome::LeaseLost);
    assert_eq!(refused, rejected(lost));
    is_empty(&*store, "r").await;
    assert_eq!(names(&from("q").claim(&*store).await), ["a"]);
    assert_eq!(complete(&*store, &held, "b").await, RELEASED);
    // Not even the transaction id of the push is stored.
    push(&*store, "r", "p", &["x"]).await;
    assert_eq!(names(&from("r").claim(&*store).await), ["x"]);
}

/// Its pushes may have been consumed meanwhile, or another consumer may have done the work.
pub(crate) async fn a_repeated_transaction_is_refused(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    let step = || {
        whole(
            &*store,
            vec![done(&claimed, "a")],
            vec![message("r", "p", "x")],
        )
    };
    assert_eq!(step().await.acked, [RELEASED]);
    let lost = Rejection::Ack(0, AckOutcome::LeaseLost);
    assert_eq!(step().await, rejected(lost.clone()));
    from("q").claim(&*store).await;
    assert_eq!(step().await, rejected(lost));
}

pub(crate) async fn an_unknown_message_rejects_the_whole_batch(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    let acks = vec![done(&claimed, "a"), done(&claimed, "unknown")];
    let refused = whole(&*store, acks, vec![message("r", "p", "x")]).await;
    let unknown = Rejection::Ack(1, AckOutcome::Unknown);
    assert_eq!(refused, rejected(unknown));
    is_empty(&*store, "r").await;
    assert_eq!(complete(&*store, &claimed, "a").await, GOES_ON);
}

pub(crate) async fn a_required_lease_must_be_valid(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let lease = claimed.lease.unwrap();
    let requiring = |required: Vec<Uuid>, transaction: &str| WriteBatch {
        required,
        ..whole_batch(vec![], vec![message("r", "p", transaction)])
    };
    let fine = apply(&*store, requiring(vec![lease], "x")).await;
    assert_eq!(fine.rejection, None);
    let foreign = Uuid::now_v7();
    let refused = apply(&*store, requiring(vec![lease, foreign], "y")).await;
    assert_eq!(refused.rejection, Some(Rejection::Lease(foreign)));
    store.pass(LEASE).await;
    let refused = apply(&*store, requiring(vec![lease], "z")).await;
    assert_eq!(refused.rejection, Some(Rejection::Lease(lease)));
    assert_eq!(names(&from("r").batch(9).claim(&*store).await), ["x"]);
}

/// Clients send a lease for the whole transaction only.
pub(crate) async fn a_required_lease_fences_the_acks(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    for (transaction, status, expected) in [
        ("a", AckStatus::Completed, GOES_ON),
        ("b", AckStatus::Failed, RELEASED),
    ] {
        let mut ack = ack_of(&claimed, transaction, status);
        ack.lease = None;
        let whole = WriteBatch {
            required: vec![claimed.lease.unwrap()],
            ..whole_batch(vec![ack], vec![])
        };
        assert_eq!(apply(&*store, whole).await.acked, [expected]);
    }
    assert_eq!(names(&from("q").batch(2).claim(&*store).await), ["b"]);
}

pub(crate) async fn a_duplicate_push_is_reported_and_the_rest_is_done(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let known = push_all(&*store, vec![message("r", "p", "x")])
        .await
        .remove(0);
    let claimed = from("q").claim(&*store).await;
    let pushes = ["x", "y", "y"].map(|name| message("r", "p", name));
    let done = whole(&*store, vec![done(&claimed, "a")], pushes.to_vec()).await;
    assert_eq!((done.rejection, &*done.acked), (None, &[RELEASED][..]));
    let pushed: Vec<_> = done.pushed.into_iter().map(Result::unwrap).collect();
    let duplicates = pushed.iter().map(|pushed| pushed.duplicate);
    assert!(duplicates.eq([true, false, true]));
    assert_eq!((pushed[0].id, pushed[2].id), (known.id, pushed[1].id));
    assert_eq!(names(&from("r").batch(9).claim(&*store).await), ["x", "y"]);
}

pub(crate) async fn a_refused_push_rejects_the_whole_batch(store: TestStore) {
    configure(&*store, "r", |options| options.max_size = 2).await;
    push(&*store, "r", "p", &["x"]).await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let pushes = ["s", "r", "r"].map(|queue| message(queue, "p", &Uuid::new_v4().to_string()));
    let refused = whole(&*store, vec![done(&claimed, "a")], pushes.to_vec()).await;
    let full = Rejection::Push(2, PushRefusal::Full { max_size: 2 });
    assert_eq!(refused, rejected(full));
    is_empty(&*store, "s").await;
    assert_eq!(complete(&*store, &claimed, "a").await, RELEASED);
    // A duplicate counts once against the limit of the queue.
    let twice = ["y", "y"].map(|name| message("r", "p", name));
    let fits = whole(&*store, Vec::new(), twice.to_vec()).await;
    assert_eq!(fits.rejection, None);
    assert_eq!(names(&from("r").batch(9).claim(&*store).await), ["x", "y"]);
}

pub(crate) async fn an_ack_of_a_completed_message_rejects_nothing(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    complete(&*store, &claimed, "a").await;
    let acks = vec![done(&claimed, "a"), done(&claimed, "b")];
    let done = whole(&*store, acks, vec![message("r", "p", "x")]).await;
    assert_eq!(
        (done.rejection, &*done.acked),
        (None, &[AckOutcome::AlreadyDone, RELEASED][..])
    );
}

pub(crate) async fn a_rejected_batch_leaves_the_others_of_its_commit_alone(store: TestStore) {
    const BATCHES: usize = 30;
    let mut claims = Vec::new();
    for number in 0..BATCHES {
        push(&*store, "q", &format!("p{number}"), &["a"]).await;
        claims.push(from("q").claim(&*store).await);
    }
    let batches = claims.iter().enumerate().map(|(number, claimed)| {
        let mut ack = done(claimed, "a");
        if number % 3 == 0 {
            ack.lease = Some(Uuid::nil());
        }
        let push = message("r", "p", &number.to_string());
        whole(&*store, vec![ack], vec![push])
    });
    let done = join_all(batches).await;
    for (number, done) in done.iter().enumerate() {
        let lost = (number % 3 == 0).then_some(Rejection::Ack(0, AckOutcome::LeaseLost));
        assert_eq!(done.rejection, lost);
    }
    let claimed = from("r").batch(100).claim(&*store).await;
    let numbers = names(&claimed)
        .into_iter()
        .map(|name| name.parse().unwrap());
    let mut numbers: Vec<usize> = numbers.collect();
    numbers.sort_unstable();
    let expected: Vec<usize> = (0..BATCHES).filter(|number| number % 3 != 0).collect();
    assert_eq!(numbers, expected);
}

pub(crate) async fn one_of_two_batches_that_ack_the_same_message_commits(store: TestStore) {
    let nodes = store.nodes().await;
    for round in 0..20 {
        let transaction = format!("t{round}");
        push(&*nodes[0], "q", "p", &[&transaction]).await;
        let claimed = from("q").claim(&*nodes[0]).await;
        let rejections = race(&nodes, 2, |node, store| {
            let ack = done(&claimed, &transaction);
            let push = message("r", "p", &format!("{round}-{node}"));
            async move { whole(&*store, vec![ack], vec![push]).await.rejection }
        });
        let rejections: Vec<_> = rejections.await.into_iter().flatten().collect();
        assert_eq!(rejections, [Rejection::Ack(0, AckOutcome::LeaseLost)]);
    }
    let pushed = from("r").batch(100).claim(&*nodes[0]).await;
    assert_eq!(pushed.messages().count(), 20);
}
