//! PostgreSQL only: a push that is committed in two parts, of which the second fails.

use wakeline_store::Error as StoreError;
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{from, message, names},
    test_door::{TestDoor, taken},
    test_store::TestStore,
};

/// A queue that was deleted under a push is made again in a second transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_whose_second_part_fails_is_of_unknown_outcome_and_wakes_for_its_first() {
    let store = TestStore::postgres().await;
    let door = TestDoor::open(&store).await;
    door.recheck_on_request();
    // The door's node knows both queues.
    let first = ["kept", "deleted"].map(|queue| message(queue, "p", "a"));
    door.queue.push(first.to_vec()).await.unwrap();
    from("kept").auto_ack().claim(&*store).await;
    let deleted = store.delete_queue("deleted".to_owned()).done().await;
    assert_eq!(deleted, Some(1));
    let no_room = "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
         CREATE TRIGGER no_room BEFORE INSERT ON wakeline.queue
             FOR EACH ROW EXECUTE FUNCTION no_room()";
    store.database.execute(no_room).await;
    let waiting = door.parked(from("kept").auto_ack()).await;
    let both = ["kept", "deleted"].map(|queue| message(queue, "p", "b"));
    let pushed = door.queue.push(both.to_vec()).await;
    let Err(wakeline_queue::Error::Store(error)) = pushed else {
        panic!("{pushed:?}");
    };
    assert!(matches!(error, StoreError::OutcomeUnknown(_)), "{error}");
    assert_eq!(names(&taken(waiting).await), ["b"]);
    // A push of which no part is on disk fails with a known outcome.
    let only = vec![message("deleted", "p", "c")];
    let pushed = door.queue.push(only).await;
    let Err(wakeline_queue::Error::Store(error)) = pushed else {
        panic!("{pushed:?}");
    };
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
}
