//! The other forms of a feed: events and pages, and refused requests.

use std::time::Duration;

use wakeline_feed::query::MAX_TOGETHER;
use wakeline_testkit::{eventually, soon};

use crate::{
    blog::{fact, post, references, request_text, site},
    client::{EVENTS, Frame, JINAGA, Stream},
    database::Database,
    node::{Blog, Node, TEXT},
    stream_fixture::received,
};

/// An event's name, its id and its frame.
async fn event(stream: &mut Stream) -> (String, String, Frame) {
    let mut lines = Vec::new();
    loop {
        let line = soon("an event", stream.line()).await.expect("it goes on");
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let field = |name: &str| {
        let found = lines.iter().find_map(|line| line.strip_prefix(name));
        let found = found.unwrap_or_else(|| panic!("{name} {lines:?}"));
        found.to_owned()
    };
    let frame = Frame::read(&field("data: ")).unwrap();
    (field("event: "), field("id: "), frame)
}

pub(crate) async fn event_streams_resume_after_the_last_event(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, posts, path } = node.blog(150).await;
    let accept = ("Accept", EVENTS);
    let mut stream = Stream::open(node.address, &path, &[accept]).await;
    assert_eq!(stream.head.header("content-type"), Some(EVENTS));
    let (name, id, frame) = event(&mut stream).await;
    assert_eq!((&*name, frame.references.len()), ("page", 100));
    assert_eq!(id, frame.bookmark);
    drop(stream);
    let resumed = [accept, ("Last-Event-ID", &*id)];
    let mut stream = Stream::open(node.address, &path, &resumed).await;
    let (_, _, frame) = event(&mut stream).await;
    assert_eq!(frame.references, references(&posts[100..]));
    let (name, id, sync) = event(&mut stream).await;
    assert_eq!((&*name, &id), ("sync", &sync.bookmark));
    assert!(sync.is_sync());
    let new = post(&home, "new");
    node.add(&new).await;
    let (name, _, frame) = event(&mut stream).await;
    assert_eq!((&*name, frame.references), ("page", references(&[new])));
}

pub(crate) async fn a_page_is_held_until_a_fact_is_saved(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, posts, path } = node.blog(2).await;
    let wait = [("Prefer", "wait=30")];
    // Stored facts are answered at once.
    let answer = node.get(&path, &wait).await;
    assert_eq!(answer.head.header("preference-applied"), Some("wait=30"));
    let page = answer.page();
    assert_eq!(page.references, references(&posts));
    node.no_streams_left().await;
    let path = format!("{path}?b={}", page.bookmark);
    let held = node.get(&path, &wait);
    let saving = async {
        eventually("the request to be held", async || node.engine.held() == 2).await;
        node.add(&post(&home, "new")).await;
    };
    let (answer, ()) = tokio::join!(held, saving);
    let timing = answer.head.header("server-timing").unwrap();
    assert!(timing.contains("wake;desc=\"notify\""), "{timing}");
    assert!(!timing.contains("db;dur=0.0"), "{timing}");
    let page = answer.page();
    assert_eq!(page.references, references(&[post(&home, "new")]));
    node.no_streams_left().await;
}

pub(crate) async fn a_page_is_held_no_longer_than_the_client_prefers(database: Database) {
    let node = Node::new(&database).await;
    let path = node.blog(2).await.path;
    let bookmark = node.get(&path, &[]).await.page().bookmark;
    let path = format!("{path}?b={bookmark}");
    let page = node.get(&path, &[("Prefer", "wait=1")]).await.page();
    assert_eq!((page.references.len(), page.bookmark), (0, bookmark));
    node.no_streams_left().await;
}

/// Upstream's bookmarks, and one of another store.
pub(crate) async fn foreign_bookmarks_mean_the_beginning(database: Database) {
    let node = Node::new(&database).await;
    let Blog { posts, path, .. } = node.blog(3).await;
    for bookmark in ["254", "254.253", "99999999999999999999", "w1-1000000"] {
        let path = format!("{path}?b={bookmark}");
        let frames = node.stream(&path).await.until_sync().await;
        assert_eq!(received(&frames), references(&posts), "{bookmark}");
        let page = node.get(&path, &[]).await.page();
        assert_eq!(page.references, references(&posts), "{bookmark}");
    }
}

pub(crate) async fn a_bad_bookmark_is_refused(database: Database) {
    let node = Node::new(&database).await;
    let path = node.blog(0).await.path;
    let long = "1".repeat(5_000);
    let of_other_feeds = ["w1-0-5-0-1.1.1", "w1-0-5-0-", "w1-1-5-1-1"];
    let unreadable = ["xyz", "w1-", "w1-x", "w1-3-2-0-1", "w2-3", "-1", &long];
    for bookmark in unreadable.into_iter().chain(of_other_feeds) {
        let resumed = format!("{path}?b={bookmark}");
        let answer = node.get(&resumed, &[]).await;
        assert_eq!(answer.head.status, 400, "{bookmark}: {answer:?}");
        assert!(answer.body.starts_with("b: "), "{bookmark}: {answer:?}");
        let stream = Stream::open(node.address, &resumed, &[("Accept", JINAGA)]).await;
        assert_eq!(stream.head.status, 400, "{bookmark}");
        // The text has the name under which it was sent, for a page and for a stream.
        for form in ["application/json", EVENTS] {
            let sent = [("Last-Event-ID", bookmark), ("Accept", form)];
            let answer = node.get(&path, &sent).await;
            assert_eq!(answer.head.status, 400, "{bookmark}: {answer:?}");
            assert!(answer.body.starts_with("Last-Event-ID: "), "{answer:?}");
        }
    }
    assert_eq!(node.feeds.streams(), 0);
}

/// So many facts below a site, each a successor of the one before.
fn chain(count: usize) -> String {
    let steps = "->next: Link".repeat(count - 1);
    format!("(s: Site) {{ l: Link [l{steps}->site: Site = s] }}")
}

/// The site is one of them.
pub(crate) async fn a_feed_at_the_limit_of_facts_is_served(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let mut links = vec![fact("Link", "0", &[("site", &home)])];
    for number in 1..MAX_TOGETHER {
        links.push(fact("Link", number, &[("next", &links[number - 1])]));
    }
    let (old, last) = links.split_at(MAX_TOGETHER - 1);
    let other = fact("Link", "other", &[("next", &old[old.len() - 2])]);
    node.save(&[std::slice::from_ref(&home), old].concat())
        .await;
    let path = node.declare(&chain(MAX_TOGETHER - 1), &[&home]).await;
    let mut stream = node.stream(&path).await;
    let frames = stream.until_sync().await;
    assert_eq!(received(&frames), references(&old[old.len() - 1..]));
    // The first is too far below, the other is not.
    node.add(&last[0]).await;
    node.add(&other).await;
    assert_eq!(received(&stream.until_sync().await), references(&[other]));
}

pub(crate) async fn a_feed_above_the_limit_of_facts_is_refused(database: Database) {
    let node = Node::new(&database).await;
    let home = node.blog(0).await.home;
    let within = format!(
        "(s: Site) {{ p: Post [p->site: Site = s !E {{ l: Link [l{}->post: Post = p] }}] }}",
        "->next: Link".repeat(MAX_TOGETHER)
    );
    for text in [chain(MAX_TOGETHER), within] {
        for path in ["/jinaga/feeds", "/jinaga/read"] {
            let text = request_text(&text, &[&home]);
            let answer = node.post("", path, TEXT, &text).await;
            assert_eq!(answer.head.status, 400, "{path} {answer:?}");
            let limit = format!("more than {MAX_TOGETHER} facts");
            assert!(answer.body.contains(&limit), "{answer:?}");
        }
    }
}

pub(crate) async fn an_unknown_feed_is_not_found(database: Database) {
    let node = Node::new(&database).await;
    let path = "/jinaga/feeds/unknown";
    let answer = node.get(path, &[]).await;
    assert_eq!((answer.head.status, &*answer.body), (404, "feed_not_found"));
    let stream = Stream::open(node.address, path, &[("Accept", JINAGA)]).await;
    assert_eq!(stream.head.status, 404);
    assert_eq!(node.feeds.streams(), 0);
}

pub(crate) async fn a_feed_is_known_after_a_restart(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, path, .. } = node.blog(3).await;
    let bookmark = node.get(&path, &[]).await.page().bookmark;
    drop(node);
    let node = Node::new(&database).await;
    let mut stream = node.stream(&format!("{path}?b={bookmark}")).await;
    assert_eq!(stream.until_sync().await.len(), 1);
    let new = post(&home, "new");
    node.add(&new).await;
    assert_eq!(received(&stream.until_sync().await), references(&[new]));
    let silent = tokio::time::timeout(Duration::from_millis(50), stream.line()).await;
    assert!(silent.is_err(), "{silent:?}");
}
