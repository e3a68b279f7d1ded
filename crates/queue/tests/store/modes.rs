//! Maintenance: pushes or pops are paused, on all nodes.

use wakeline_queue::{
    ack::AckStatus, message::PushRefusal, queue_admin::PauseModes, write_batch::Rejection,
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{
        RELEASED, ack_of, apply, complete, from, message, names, of, push, try_push, whole_batch,
    },
    test_door::{TestDoor, taken},
    test_store::TestStore,
};

pub(crate) async fn paused_pushes_are_refused(store: TestStore) {
    let [one, two] = store.nodes().await;
    push(&*one, "q", "p", &["a"]).await;
    assert_eq!(one.modes().await.unwrap(), PauseModes::default());
    let modes = one.set_push_paused(true).done().await;
    assert!(modes.push_paused && !modes.pop_paused);
    assert_eq!(two.modes().await.unwrap(), modes);
    let sent = vec![
        message("q", "p", "b"),
        message("q", "p", "a"),
        message("r", "p", "c"),
    ];
    let refused = try_push(&*two, sent).await;
    assert_eq!(refused.pushed, vec![Err(PushRefusal::Paused); 3]);
    assert_eq!(refused.wakes, []);
    // Stored messages are consumed.
    let claimed = from("q").claim(&*two).await;
    let ack = ack_of(&claimed, "a", AckStatus::Completed);
    let whole = whole_batch(vec![ack], vec![message("r", "p", "c")]);
    let refused = apply(&*two, whole.clone()).await.rejection;
    assert_eq!(refused, Some(Rejection::Push(0, PushRefusal::Paused)));
    one.set_push_paused(false).done().await;
    assert_eq!(apply(&*two, whole).await.acked, [RELEASED]);
    push(&*two, "q", "p", &["b"]).await;
    assert_eq!(names(&from("r").claim(&*one).await), ["c"]);
}

pub(crate) async fn paused_pops_find_nothing(store: TestStore) {
    let [one, two] = store.nodes().await;
    push(&*one, "q", "p", &["a"]).await;
    let claimed = from("q").group("early").claim(&*one).await;
    two.set_pop_paused(true).done().await;
    for request in [from("q"), from("q").partition("p"), from("q").auto_ack()] {
        assert_eq!(request.nothing(&*one).await, None);
    }
    assert_eq!(of(Some("q"), None).nothing(&*one).await, None);
    // A consumer with a claim may finish it, and producers go on.
    let done = complete(&*one, &claimed, "a").await;
    assert_eq!(done, RELEASED);
    push(&*one, "q", "p", &["b"]).await;
    two.set_pop_paused(false).done().await;
    assert_eq!(names(&from("q").batch(9).claim(&*one).await), ["a", "b"]);
}

pub(crate) async fn a_pop_held_during_a_pause_is_answered_after_it(store: TestStore) {
    let door = TestDoor::open(&store).await;
    door.recheck_on_request();
    door.queue.pause_pops(true).await.unwrap();
    push(&*store, "q", "p", &["a"]).await;
    let waiting = [
        door.parked(from("q")).await,
        door.parked(from("q").group("h").partition("p")).await,
    ];
    let modes = door.queue.pause_pops(false).await.unwrap();
    assert_eq!(modes, PauseModes::default());
    for pop in waiting {
        assert_eq!(names(&taken(pop).await), ["a"]);
    }
}
