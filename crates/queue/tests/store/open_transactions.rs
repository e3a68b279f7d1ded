//! PostgreSQL only: writes while another transaction on the same partition has not committed. SQLite
//! has one writer.

use std::time::Duration;

use tokio_postgres::Client;
use wakeline_queue::{ack::AckStatus, claim::PopOutcome, store::Store};

use crate::{
    calls::{Request, ack, complete, from, make_dead, names, part, push, release_claim},
    test_store::TestStore,
};

/// Far below any lease: a pop that finds nothing checks again when the push is done.
const SOON: Duration = Duration::from_secs(1);

/// A push to partition `p` up to its end; the test commits `b`.
async fn begin_push(store: &TestStore) -> Client {
    let client = store.database.session().await;
    // Deferred work is done at once: what is left to do is the commit.
    let sql = "BEGIN; SELECT wakeline.push('q', '1', 'p', 'b'); SET CONSTRAINTS ALL IMMEDIATE";
    client.batch_execute(sql).await.unwrap();
    client
}

/// The pop must find nothing, and check again soon.
async fn assert_empty_with_a_recheck(store: &dyn Store, request: &Request) -> Duration {
    let PopOutcome::Empty { recheck_after } = request.pop(store).await else {
        panic!("something was found");
    };
    let recheck_after = recheck_after.expect("a time is known");
    assert!(recheck_after <= SOON, "{recheck_after:?}");
    recheck_after
}

#[tokio::test]
async fn an_auto_ack_wakes_for_a_push_that_is_not_committed_yet() {
    let store = TestStore::postgres().await;
    push(&*store, "q", "p", &["a"]).await;
    let under_way = begin_push(&store).await;
    // The push saw that the group is not at the end, so it wakes no pop: the claim must.
    let claimed = from("q").auto_ack().claim(&*store).await;
    assert_eq!(names(&claimed), ["a"]);
    assert_eq!(claimed.wakes().len(), 1);
    let recheck_after = assert_empty_with_a_recheck(&*store, &from("q").auto_ack()).await;
    under_way.batch_execute("COMMIT").await.unwrap();
    tokio::time::sleep(recheck_after).await;
    assert_eq!(names(&from("q").claim_soon(&*store).await), ["b"]);
}

#[tokio::test]
async fn an_ack_waits_until_an_open_push_has_ended() {
    let store = TestStore::postgres().await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let under_way = begin_push(&store).await;
    let commit = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        under_way.batch_execute("COMMIT").await.unwrap();
    };
    let ((_, wakes), ()) = tokio::join!(ack(&*store, &claimed, "a", AckStatus::Completed), commit);
    assert_eq!(wakes.len(), 1);
    assert_eq!(names(&from("q").claim(&*store).await), ["b"]);
}

#[tokio::test]
async fn a_claim_does_not_wait_for_an_open_push() {
    let store = TestStore::postgres().await;
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q", "other", &["c"]).await;
    let _under_way = begin_push(&store).await;
    let mut seen = [
        from("q").claim(&*store).await,
        from("q").claim(&*store).await,
    ]
    .map(|claimed| part(&claimed).partition.clone());
    seen.sort();
    assert_eq!(seen, ["other", "p"]);
}

/// A claim that has locked the cursor may leave it as it is, and then wakes no pop.
#[tokio::test]
async fn a_cursor_that_another_claim_has_locked_is_checked_again_soon() {
    let store = TestStore::postgres().await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    release_claim(&*store, &claimed).await;
    let other = store.database.session().await;
    let lock = "BEGIN; SELECT FROM wakeline.queue_cursor FOR NO KEY UPDATE";
    other.batch_execute(lock).await.unwrap();
    for request in [from("q"), from("q").partition("p"), from("q").auto_ack()] {
        assert_empty_with_a_recheck(&*store, &request).await;
    }
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(names(&from("q").claim(&*store).await), ["a"]);
}

/// Only dead messages are left behind what is acknowledged, so the partition is not locked, and
/// whether it goes on cannot be seen.
#[tokio::test]
async fn an_ack_over_dead_messages_does_not_skip_an_open_push() {
    let store = TestStore::postgres().await;
    push(&*store, "q", "p", &["a", "dead"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    make_dead(&*store, &claimed, "dead").await;
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&claimed), ["a"]);
    let under_way = begin_push(&store).await;
    complete(&*store, &claimed, "a").await;
    under_way.batch_execute("COMMIT").await.unwrap();
    assert_eq!(names(&from("q").claim_soon(&*store).await), ["b"]);
}

/// In one batch, a push behind the acknowledgement that has caught up.
#[tokio::test]
async fn a_push_behind_an_ack_of_the_same_batch_wakes() {
    let store = TestStore::postgres().await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    push(&*store, "other", "p", &["x"]).await;
    let lock = store.database.session().await;
    let hold = "BEGIN; SELECT FROM wakeline.queue_partition WHERE queue_id = (
        SELECT id FROM wakeline.queue WHERE name = 'other') FOR UPDATE";
    lock.batch_execute(hold).await.unwrap();
    // Every worker waits for the lock, so the calls after it share a batch.
    let mut held_up = Vec::new();
    for number in 0..4 {
        let store = store.node.clone();
        held_up.push(tokio::spawn(async move {
            push(&*store, "other", "p", &[&format!("y{number}")]).await;
        }));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let release = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        lock.batch_execute("COMMIT").await.unwrap();
    };
    let ((_, wakes), pushed, ()) = tokio::join!(
        ack(&*store, &claimed, "a", AckStatus::Completed),
        push(&*store, "q", "p", &["b"]),
        release
    );
    assert_eq!(wakes.len() + pushed.len(), 1, "its group is woken once");
    assert_eq!(names(&from("q").claim_soon(&*store).await), ["b"]);
    for held_up in held_up {
        held_up.await.unwrap();
    }
}
