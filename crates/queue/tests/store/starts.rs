//! Where a new group starts.

use http::StatusCode;
use wakeline_queue::claim::Start;
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{HOUR, Request, from, names, of, push, scope},
    http_calls::Routes,
    test_store::TestStore,
};

fn all_of(request: Request) -> Request {
    request.batch(9).partitions(9).auto_ack()
}

pub(crate) async fn a_group_starts_with_all_messages_or_with_new_ones(store: TestStore) {
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

pub(crate) async fn a_group_starts_at_a_time(store: TestStore) {
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
        let claimed = request.claim_soon(&*store).await;
        assert_eq!(names(&claimed), expected, "{group}");
    }
    let future = all_of(from("q").group("future").start(Start::At(now + hours(1))));
    assert_eq!(future.nothing(&*store).await, None);
}

pub(crate) async fn only_the_first_pop_sets_the_start(store: TestStore) {
    push(&*store, "q", "p", &["old"]).await;
    store.pass_for_all(HOUR).await;
    let new = all_of(from("q")).start(Start::New);
    assert_eq!(new.nothing(&*store).await, None);
    let all = all_of(from("q")).start(Start::All);
    assert_eq!(all.nothing(&*store).await, None);
    assert_eq!(all.partition("p").nothing(&*store).await, None);
}

/// The time of the first pop counts, not that of the first queue.
pub(crate) async fn a_start_by_namespace_counts_from_the_first_pop(store: TestStore) {
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

pub(crate) async fn a_later_subscription_applies_to_partitions_without_a_cursor(store: TestStore) {
    push(&*store, "q", "p", &["old"]).await;
    store.pass_for_all(HOUR).await;
    let now = store.now().await;
    assert_eq!(store.subscribe("g".to_owned(), now).done().await, 0);
    let new = all_of(from("q")).start(Start::New);
    assert_eq!(new.nothing(&*store).await, None);
    assert_eq!(store.subscribe("g".to_owned(), 0).done().await, 1);
    assert_eq!(new.nothing(&*store).await, None, "it has a cursor there");
    store.delete_group(scope(None, None), false).done().await;
    assert_eq!(names(&new.claim_soon(&*store).await), ["old"]);
}

pub(crate) async fn each_word_for_a_start_is_known_and_others_are_refused(store: TestStore) {
    let routes = Routes::of(store.queue());
    push(&*store, "q", "p", &["a"]).await;
    for (number, (query, finds)) in [
        ("subscriptionMode=all", true),
        ("subscriptionMode=from_beginning", true),
        ("subscriptionMode=", true),
        ("subscriptionMode=new", false),
        ("subscriptionMode=new-only", false),
        ("subscriptionMode=all&subscriptionFrom=now", false),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/api/v1/pop/queue/q?consumerGroup=g{number}&autoAck=true&{query}");
        // A new group starts within a check or two.
        let mut popped = routes.get(&path).await;
        if popped.is_null() {
            popped = routes.get(&path).await;
        }
        assert_eq!(!popped.is_null(), finds, "{query}");
    }
    for (query, nearest) in [
        ("subscriptionMode=News", "`new`"),
        ("subscriptionMode=from_beginnning", "`from_beginning`"),
        ("subscriptionMode=latest", "new-only"),
        // The time does not hide it.
        ("subscriptionMode=alll&subscriptionFrom=now", "`all`"),
    ] {
        let path = format!("/api/v1/pop/queue/q?consumerGroup=wrong&{query}");
        let (status, refused) = routes.ask_get(&path).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}: {refused}");
        assert_eq!(refused["field"], "subscriptionMode");
        let text = refused["error"].as_str().expect("a text");
        assert!(text.contains(nearest), "{text}");
    }
}
