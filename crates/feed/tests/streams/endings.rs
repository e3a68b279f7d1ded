//! Streams that the server ends: properly, and with a bookmark to resume from.

use std::time::Duration;

use wakeline_feed::{fact::Fact, service::Settings, stream::Limits};
use wakeline_testkit::{eventually, soon};

use crate::{
    blog::{POSTS, post, posts, references, saved, site, sorted},
    client::{EVENTS, JINAGA, Stream},
    database::Database,
    node::{Blog, Node, settings},
    stream_fixture::{long_limits, received},
};

/// More than all buffers between two sockets hold.
const MUCH: usize = 45_000;

fn limited(stream: Limits) -> Settings {
    Settings {
        stream,
        page_size: 1_000,
        ..settings()
    }
}

async fn much(node: &Node) -> (Vec<Fact>, String) {
    let home = site("home");
    let all = posts(&home, "post", MUCH);
    let facts = [vec![home.clone()], all.clone()].concat();
    saved(&*node.store, &node.bus, &facts).await;
    (all, node.declare(POSTS, &[&home]).await)
}

async fn narrow(node: &Node, path: &str) -> Stream {
    Stream::narrow(node.address, path, &[("Accept", JINAGA)]).await
}

pub(crate) async fn a_slow_reader_is_paused_and_then_ended(database: Database) {
    let short = limited(Limits {
        slow_reader: Duration::from_millis(300),
        ..long_limits()
    });
    let node = Node::with(&database, short).await;
    let (all, path) = much(&node).await;
    let mut stream = narrow(&node, &path).await;
    // Its client reads nothing, so no more pages are read for it; then it ends.
    node.no_streams_left().await;
    assert!(node.store.delta_pages() < MUCH / 1_000);
    let mut frames = stream.rest().await;
    let bookmark = &frames.last().unwrap().bookmark;
    let other = Node::new(&database).await;
    let mut stream = other.stream(&format!("{path}?b={bookmark}")).await;
    frames.extend(stream.until_sync().await);
    assert_eq!(received(&frames), references(&all));
}

pub(crate) async fn a_full_waitlist_ends_a_stream_that_can_resume(database: Database) {
    let short = limited(Limits {
        waitlist_cap: 50,
        ..long_limits()
    });
    let node = Node::with(&database, short).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.stream(&path).await;
    let mut frames = stream.until_sync().await;
    let all = posts(&home, "burst", 1_000);
    node.save(&[vec![home.clone()], all.clone()].concat()).await;
    frames.extend(stream.rest().await);
    let bookmark = &frames.last().unwrap().bookmark;
    let mut stream = node.stream(&format!("{path}?b={bookmark}")).await;
    frames.extend(stream.until_sync().await);
    assert_eq!(sorted(received(&frames)), sorted(references(&all)));
}

pub(crate) async fn a_silent_stream_sends_heartbeats(database: Database) {
    let lively = limited(Limits {
        heartbeat: Duration::from_millis(30),
        ..long_limits()
    });
    let node = Node::with(&database, lively).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.live(&path).await;
    for _ in 0..3 {
        stream.heartbeat().await;
    }
    let new = post(&home, "new");
    node.add(&new).await;
    assert_eq!(received(&stream.until(1).await), references(&[new]));
    stream.until_sync().await;
    stream.heartbeat().await;
    // The heartbeats cost no statement.
    let before = node.store.calls();
    for _ in 0..5 {
        stream.heartbeat().await;
    }
    assert_eq!(node.store.calls(), before);
}

pub(crate) async fn an_old_stream_ends_properly(database: Database) {
    let short = limited(Limits {
        max_age: Some(Duration::from_millis(200)),
        ..long_limits()
    });
    let node = Node::with(&database, short).await;
    let Blog { posts, path, .. } = node.blog(10).await;
    let frames = node.stream(&path).await.rest().await;
    assert_eq!(received(&frames), references(&posts));
    assert!(frames.last().unwrap().is_sync());
    node.no_streams_left().await;
}

/// Browsers skip them.
pub(crate) async fn a_silent_event_stream_sends_comments(database: Database) {
    let lively = limited(Limits {
        heartbeat: Duration::from_millis(30),
        ..long_limits()
    });
    let node = Node::with(&database, lively).await;
    let path = node.declare(POSTS, &[&site("home")]).await;
    let mut stream = Stream::open(node.address, &path, &[("Accept", EVENTS)]).await;
    let mut comments = 0;
    while comments < 3 {
        let line = soon("a comment", stream.line()).await;
        if line.expect("it goes on") == ":" {
            let end = soon("its end", stream.line()).await;
            assert_eq!(end.as_deref(), Some(""));
            comments += 1;
        }
    }
}

/// The answer is an empty page: the client asks the next node.
pub(crate) async fn a_drain_answers_a_held_page(database: Database) {
    let node = Node::new(&database).await;
    let path = node.blog(1).await.path;
    let bookmark = node.get(&path, &[]).await.page().bookmark;
    let path = format!("{path}?b={bookmark}");
    let held = node.get(&path, &[("Prefer", "wait=60")]);
    let draining = async {
        eventually("the request to be held", async || node.engine.held() == 2).await;
        node.engine.drain();
    };
    let (answer, ()) = tokio::join!(held, draining);
    let page = answer.page();
    assert_eq!((page.references.len(), page.bookmark), (0, bookmark));
    node.no_streams_left().await;
}

pub(crate) async fn a_drain_ends_all_streams_properly(database: Database) {
    let node = Node::new(&database).await;
    let Blog { posts, path, .. } = node.blog(350).await;
    let mut live = node.live(&path).await;
    let unresolved = node.declare(POSTS, &[&site("not stored")]).await;
    let mut waiting = node.live(&unresolved).await;
    // A page that is being read is sent, with its bookmark. With a new horizon it is not in the cache.
    node.save(&[site("other")]).await;
    let half = node.get(&path, &[]).await.page().bookmark;
    node.store.hold_up(0);
    let mut reading = node.stream(&format!("{path}?b={half}")).await;
    soon("a page", node.store.is_held_up()).await;
    node.engine.drain();
    assert!(live.rest().await.is_empty());
    assert!(waiting.rest().await.is_empty());
    node.store.let_go();
    let frames = reading.rest().await;
    assert_eq!(received(&frames), references(&posts[100..200]));
    node.no_streams_left().await;
    // A new stream is refused.
    let refused = Stream::open(node.address, &path, &[("Accept", JINAGA)]).await;
    assert_eq!(refused.head.status, 503);
    assert_eq!(refused.head.header("retry-after"), Some("1"));
    let rest = format!("{path}?b={}", frames.last().unwrap().bookmark);
    let node = Node::new(&database).await;
    let rest = node.stream(&rest).await.until_sync().await;
    assert_eq!(received(&rest), references(&posts[200..]));
}
