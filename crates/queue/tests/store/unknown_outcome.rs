//! PostgreSQL only: a push that is committed in two parts, of which the second fails.

use wakeline_store::Error as StoreError;
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{from, message, names, push},
    test_door::{TestDoor, taken},
    test_store::TestStore,
};

/// A queue that was deleted under a push is made again in a second transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_whose_second_part_fails_is_of_unknown_outcome_and_wakes_for_its_first() {
    let store = TestStore::postgres().await;
    let door = TestDoor::open(&store).await;
    door.watch();
    for queue in ["kept", "deleted"] {
        push(&*door.store.inner, queue, "p", &["a"]).await;
    }
    from("kept").auto_ack().claim(&*door.store.inner).await;
    let other = store.another_node().await;
    let deleted = other
        .delete_queue("deleted".to_owned())
        .commit_alone()
        .await;
    assert_eq!(deleted, Ok(Some(1)));
    store
        .database
        .execute(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$",
        )
        .await;
    store
        .database
        .execute(
            "CREATE TRIGGER no_room BEFORE INSERT ON wakeline.queue
             FOR EACH ROW EXECUTE FUNCTION no_room()",
        )
        .await;
    let waiting = door.parked(from("kept").auto_ack()).await;
    let both = ["kept", "deleted"].map(|queue| message(queue, "p", "b"));
    let pushed = door.queue.push(both.to_vec()).await;
    let Err(wakeline_queue::Error::Store(error)) = pushed else {
        panic!("{pushed:?}");
    };
    assert!(matches!(error, StoreError::OutcomeUnknown(_)), "{error}");
    assert_eq!(names(&taken(waiting).await), ["b"]);
    // Nothing of it is on disk where that is known.
    let only = vec![message("deleted", "p", "c")];
    let pushed = door.queue.push(only).await;
    let Err(wakeline_queue::Error::Store(error)) = pushed else {
        panic!("{pushed:?}");
    };
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
}
