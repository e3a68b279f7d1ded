//! Where a group begins that is seen for the first time.

use std::time::Duration;

use wakeline_queue::{claim::Start, queue_admin::GroupScope};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{Request, from, names, of, push},
    test_store::TestStore,
};

const HOUR: Duration = Duration::from_secs(3_600);

fn all_of(request: Request) -> Request {
    request.batch(9).partitions(9).auto_ack()
}

pub(crate) async fn with_everything_or_with_what_is_new(store: TestStore) {
    push(&*store, "q", "p", &["old"]).await;
    store.pass_for_all(HOUR).await;
    let new = all_of(from("q").group("new").start(Start::New));
    assert_eq!(new.nothing(&*store).await, None);
    store.pass_for_all(HOUR).await;
    push(&*store, "q", "p", &["newer"]).await;
    push(&*store, "q", "p2", &["newest"]).await;
    let mut seen = names(&new.claim_soon(&*store).await).join(" ");
    if !seen.contains(' ') {
        seen = format!("{seen} {}", names(&new.claim_soon(&*store).await).join(" "));
    }
    assert_eq!(seen, "newer newest");
    let all = all_of(from("q").group("all").start(Start::All));
    assert_eq!(names(&all.claim(&*store).await), ["old", "newer", "newest"]);
}

pub(crate) async fn at_a_time(store: TestStore) {
    for name in ["a", "b", "c"] {
        push(&*store, "q", "p", &[name]).await;
        store.pass_for_all(HOUR).await;
    }
    let hours = |count: i64| count * 3_600_000_000;
    let now = store.now().await;
    for (group, since, expected) in [
        ("two and a half", hours(5) / 2, vec!["b", "c"]),
        ("ten", hours(10), vec!["a", "b", "c"]),
        ("one and a half", hours(3) / 2, vec!["c"]),
    ] {
        let request = all_of(from("q").group(group).start(Start::At(now - since)));
        assert_eq!(
            names(&request.claim_soon(&*store).await),
            expected,
            "{group}"
        );
    }
    let future = all_of(from("q").group("future").start(Start::At(now + hours(1))));
    assert_eq!(future.nothing(&*store).await, None);
}

pub(crate) async fn it_is_said_once(store: TestStore) {
    push(&*store, "q", "p", &["old"]).await;
    store.pass_for_all(HOUR).await;
    let new = all_of(from("q")).start(Start::New);
    assert_eq!(new.nothing(&*store).await, None);
    let all = all_of(from("q")).start(Start::All);
    assert_eq!(all.nothing(&*store).await, None);
    assert_eq!(all.partition("p").nothing(&*store).await, None);
}

/// The moment that counts is that of the first question, not that of the first queue.
pub(crate) async fn a_namespace_is_new_from_the_first_question_on(store: TestStore) {
    push(&*store, "ns.a", "p", &["old"]).await;
    store.pass_for_all(HOUR).await;
    let new = all_of(of(Some("ns"), None)).start(Start::New);
    let nowhere = all_of(of(Some("nowhere"), None)).start(Start::New);
    assert_eq!(new.nothing(&*store).await, None);
    assert_eq!(nowhere.nothing(&*store).await, None);
    store.pass_for_all(HOUR).await;
    push(&*store, "ns.b", "p", &["b"]).await;
    push(&*store, "nowhere.a", "p", &["c"]).await;
    store.pass_for_all(HOUR).await;
    assert_eq!(names(&new.claim_soon(&*store).await), ["b"]);
    assert_eq!(names(&nowhere.claim_soon(&*store).await), ["c"]);
    push(&*store, "ns.a", "p", &["a"]).await;
    assert_eq!(names(&new.claim_soon(&*store).await), ["a"]);
}

pub(crate) async fn it_can_be_told_afterwards_and_holds_for_what_is_not_seen(store: TestStore) {
    push(&*store, "q", "p", &["old"]).await;
    store.pass_for_all(HOUR).await;
    let now = store.now().await;
    assert_eq!(store.subscribe("g".to_owned(), now).done().await, 0);
    let new = all_of(from("q")).start(Start::New);
    assert_eq!(new.nothing(&*store).await, None);
    assert_eq!(store.subscribe("g".to_owned(), 0).done().await, 1);
    assert_eq!(new.nothing(&*store).await, None, "it has seen this");
    let scope = GroupScope {
        group: "g".to_owned(),
        queue: None,
        partition: None,
    };
    store.delete_group(scope, false).done().await;
    assert_eq!(names(&new.claim_soon(&*store).await), ["old"]);
}
