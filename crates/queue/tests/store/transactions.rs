//! Steps that are all or nothing.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::{sync::Barrier, task::JoinSet, time::timeout};
use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, AckOutcome, AckStatus},
    claim::Claim,
    message::{NewMessage, PushRefusal},
    options::Options,
    store::Store,
    write_batch::{BatchOutcome, Rejection, WriteBatch},
};

use crate::{
    calls::{
        GOES_ON, LEASE, RELEASED, apply, configure, from, message, names, outcome, push, push_all,
        say,
    },
    races::HANGS,
    test_store::TestStore,
};

async fn whole(store: &dyn Store, acks: Vec<Ack>, pushes: Vec<NewMessage>) -> BatchOutcome {
    let whole = WriteBatch {
        pushes,
        acks,
        is_whole: true,
        ..WriteBatch::default()
    };
    apply(store, whole).await
}

fn done(claimed: &Claim, transaction: &str) -> Ack {
    say(claimed, transaction, AckStatus::Completed)
}

async fn is_empty(store: &dyn Store, queue: &str) {
    assert_eq!(
        from(queue).nothing(store).await,
        None,
        "{queue} has something"
    );
}

pub(crate) async fn an_ack_and_pushes_are_done_together(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let pushes = vec![message("r", "p", "x"), message("s", "p", "y")];
    let done = whole(&*store, vec![done(&claimed, "a")], pushes).await;
    assert_eq!((done.rejection, &*done.acked), (None, &[RELEASED][..]));
    assert!(
        done.pushed
            .iter()
            .all(|pushed| !pushed.as_ref().unwrap().duplicate)
    );
    is_empty(&*store, "q").await;
    assert_eq!(names(&from("r").claim(&*store).await), ["x"]);
    assert_eq!(names(&from("s").claim(&*store).await), ["y"]);
}

pub(crate) async fn a_lost_lease_undoes_everything(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q2", "p", &["b"]).await;
    let lost = from("q").claim(&*store).await;
    store.pass(LEASE).await;
    let held = from("q2").claim(&*store).await;
    let acks = vec![done(&held, "b"), done(&lost, "a")];
    let refused = whole(&*store, acks, vec![message("r", "p", "x")]).await;
    let because = Rejection::Ack(1, AckOutcome::LeaseLost);
    assert_eq!(
        refused,
        BatchOutcome {
            rejection: Some(because),
            ..BatchOutcome::default()
        }
    );
    is_empty(&*store, "r").await;
    assert_eq!(names(&from("q").claim(&*store).await), ["a"]);
    assert_eq!(
        outcome(&*store, &held, "b", AckStatus::Completed).await,
        RELEASED
    );
    // Not even its transaction id is remembered.
    push(&*store, "r", "p", &["x"]).await;
    assert_eq!(names(&from("r").claim(&*store).await), ["x"]);
}

pub(crate) async fn an_unknown_message_undoes_everything(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    let acks = vec![done(&claimed, "a"), done(&claimed, "unknown")];
    let refused = whole(&*store, acks, vec![message("r", "p", "x")]).await;
    assert_eq!(
        refused.rejection,
        Some(Rejection::Ack(1, AckOutcome::Unknown))
    );
    is_empty(&*store, "r").await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        GOES_ON
    );
}

pub(crate) async fn a_required_lease_must_be_alive(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let lease = claimed.lease.unwrap();
    let requiring = |required: Vec<Uuid>, transaction: &str| WriteBatch {
        pushes: vec![message("r", "p", transaction)],
        is_whole: true,
        required,
        ..WriteBatch::default()
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

/// Clients name it for the whole transaction only.
pub(crate) async fn a_required_lease_fences_the_acks(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    for (transaction, status, expected) in [
        ("a", AckStatus::Completed, GOES_ON),
        ("b", AckStatus::Failed, RELEASED),
    ] {
        let mut ack = say(&claimed, transaction, status);
        ack.lease = None;
        let whole = WriteBatch {
            acks: vec![ack],
            is_whole: true,
            required: vec![claimed.lease.unwrap()],
            ..WriteBatch::default()
        };
        assert_eq!(apply(&*store, whole).await.acked, [expected]);
    }
    assert_eq!(names(&from("q").batch(2).claim(&*store).await), ["b"]);
}

pub(crate) async fn a_duplicate_push_is_told_and_the_rest_done(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let known = push_all(&*store, vec![message("r", "p", "x")])
        .await
        .remove(0);
    let claimed = from("q").claim(&*store).await;
    let pushes = ["x", "y", "y"].map(|name| message("r", "p", name));
    let done = whole(&*store, vec![done(&claimed, "a")], pushes.to_vec()).await;
    assert_eq!((done.rejection, &*done.acked), (None, &[RELEASED][..]));
    let pushed: Vec<_> = done.pushed.into_iter().map(Result::unwrap).collect();
    let told: Vec<bool> = pushed.iter().map(|pushed| pushed.duplicate).collect();
    assert_eq!(told, [true, false, true]);
    assert_eq!((pushed[0].id, pushed[2].id), (known.id, pushed[1].id));
    assert_eq!(names(&from("r").batch(9).claim(&*store).await), ["x", "y"]);
}

pub(crate) async fn a_refused_push_undoes_the_acks(store: TestStore) {
    let options = Options {
        max_size: 2,
        ..Options::default()
    };
    configure(&*store, "r", options).await;
    push(&*store, "r", "p", &["x"]).await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let pushes = ["s", "r", "r"].map(|queue| message(queue, "p", &Uuid::new_v4().to_string()));
    let refused = whole(&*store, vec![done(&claimed, "a")], pushes.to_vec()).await;
    let full = Rejection::Push(2, PushRefusal::Full { max_size: 2 });
    assert_eq!(
        refused,
        BatchOutcome {
            rejection: Some(full),
            ..BatchOutcome::default()
        }
    );
    is_empty(&*store, "s").await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        RELEASED
    );
    // Twice the same takes room once.
    let twice = ["y", "y"].map(|name| message("r", "p", name));
    let fits = whole(&*store, Vec::new(), twice.to_vec()).await;
    assert_eq!(fits.rejection, None);
    assert_eq!(names(&from("r").batch(9).claim(&*store).await), ["x", "y"]);
}

pub(crate) async fn an_ack_of_what_is_done_already_undoes_nothing(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    outcome(&*store, &claimed, "a", AckStatus::Completed).await;
    let acks = vec![done(&claimed, "a"), done(&claimed, "b")];
    let done = whole(&*store, acks, vec![message("r", "p", "x")]).await;
    assert_eq!(
        (done.rejection, &*done.acked),
        (None, &[AckOutcome::AlreadyDone, RELEASED][..])
    );
}

/// Those that share a commit do not share a fate.
pub(crate) async fn a_refused_step_leaves_its_neighbours_alone(store: TestStore) {
    const STEPS: usize = 30;
    let mut claims = Vec::new();
    for number in 0..STEPS {
        push(&*store, "q", &format!("p{number}"), &["a"]).await;
        claims.push(from("q").claim(&*store).await);
    }
    let batches = claims.iter().enumerate().map(|(number, claimed)| {
        let mut ack = done(claimed, "a");
        if number % 3 == 0 {
            ack.lease = Some(Uuid::nil());
        }
        whole(
            &*store,
            vec![ack],
            vec![message("r", "p", &number.to_string())],
        )
    });
    let done = join_all(batches).await;
    for (number, done) in done.iter().enumerate() {
        let lost = (number % 3 == 0).then_some(Rejection::Ack(0, AckOutcome::LeaseLost));
        assert_eq!(done.rejection, lost);
    }
    let claimed = from("r").batch(100).claim(&*store).await;
    let mut numbers: Vec<usize> = names(&claimed)
        .iter()
        .map(|name| name.parse().unwrap())
        .collect();
    numbers.sort_unstable();
    let expected: Vec<usize> = (0..STEPS).filter(|number| number % 3 != 0).collect();
    assert_eq!(numbers, expected);
}

/// Of two that transform the same message, one does.
pub(crate) async fn one_of_two_nodes_commits_what_both_have_made(store: TestStore) {
    let nodes = store.nodes().await;
    for round in 0..20 {
        let transaction = format!("t{round}");
        push(&*nodes[0], "q", "p", &[&transaction]).await;
        let claimed = Arc::new(from("q").claim(&*nodes[0]).await);
        let start = Arc::new(Barrier::new(2));
        let mut tasks = JoinSet::new();
        for (node, store) in nodes.iter().enumerate() {
            let (store, claimed, start) = (store.clone(), claimed.clone(), start.clone());
            let ack = done(&claimed, &transaction);
            tasks.spawn(async move {
                start.wait().await;
                let made = message("r", "p", &format!("{round}-{node}"));
                whole(&*store, vec![ack], vec![made]).await.rejection
            });
        }
        let refused = timeout(HANGS, tasks.join_all())
            .await
            .expect("a step hangs");
        let refused: Vec<_> = refused.into_iter().flatten().collect();
        assert_eq!(refused, [Rejection::Ack(0, AckOutcome::LeaseLost)]);
    }
    assert_eq!(
        from("r")
            .batch(100)
            .claim(&*nodes[0])
            .await
            .messages()
            .count(),
        20
    );
}
