//! Stored facts, from the first page to SYNC.

use std::collections::BTreeSet;

use wakeline_feed::{
    fact::{Fact, Hash, Predecessors, Reference},
    service::Settings,
    stream::Limits,
};
use wakeline_testkit::soon;

use crate::{
    blog::{POSTS, post, references, saved, site, sorted},
    client::JINAGA,
    database::Database,
    node::{Blog, Node, settings},
    stream_fixture::{long_limits, received},
};

const LONG: u64 = 100_000;

fn small_pages() -> Settings {
    Settings {
        page_size: 10,
        ..settings()
    }
}

pub(crate) async fn session_wiring(database: Database) {
    let node = Node::new(&database).await;
    let Blog { posts, path, .. } = node.blog(3).await;
    let mut stream = node.stream(&path).await;
    assert_eq!(stream.head.header("content-type"), Some(JINAGA));
    assert_eq!(stream.head.header("transfer-encoding"), Some("chunked"));
    assert_eq!(stream.head.header("cache-control"), Some("no-cache"));
    let frames = stream.until_sync().await;
    assert_eq!(received(&frames), references(&posts));
    assert_eq!(node.feeds.streams(), 1);
    drop(stream);
    node.no_streams_left().await;
}

pub(crate) async fn complete_historical_stream(database: Database) {
    let node = Node::new(&database).await;
    let Blog { posts, path, .. } = node.blog(350).await;
    let frames = node.stream(&path).await.until_sync().await;
    let sizes: Vec<usize> = frames.iter().map(|frame| frame.references.len()).collect();
    assert_eq!(sizes, [100, 100, 100, 50, 0]);
    assert_eq!(received(&frames), references(&posts));
    assert_eq!(frames[3].bookmark, frames[4].bookmark);

    // From any bookmark on, the other posts.
    let resumed = format!("{path}?b={}", frames[1].bookmark);
    let rest = node.stream(&resumed).await.until_sync().await;
    assert_eq!(received(&rest), references(&posts[200..]));
    // The same by pages.
    let (mut pages, mut bookmark) = (Vec::new(), String::new());
    loop {
        let page = node.get(&format!("{path}?b={bookmark}"), &[]).await.page();
        if page.references.is_empty() {
            assert_eq!(page.bookmark, bookmark);
            break;
        }
        bookmark = page.bookmark;
        pages.extend(page.references);
    }
    assert_eq!(pages, references(&posts));
}

pub(crate) async fn race_during_backfill(database: Database) {
    let node = Node::with(&database, small_pages()).await;
    let Blog { home, posts, path } = node.blog(55).await;
    // Between any two pages, the last one too, a post is saved.
    node.store.hold_up(0);
    let mut stream = node.stream(&path).await;
    let mut all = posts;
    for number in 0..6 {
        soon("a page", node.store.is_held_up()).await;
        let new = post(&home, &format!("new {number}"));
        node.add(&new).await;
        all.push(new);
        node.store.let_one_go();
    }
    node.store.let_go();
    let mut frames = stream.until(all.len()).await;
    frames.extend(stream.until_sync().await);
    assert_eq!(sorted(received(&frames)), sorted(references(&all)));
}

pub(crate) async fn disconnect_handling(database: Database) {
    let node = Node::with(&database, small_pages()).await;
    let Blog { home, path, .. } = node.blog(100).await;
    node.store.hold_up(2);
    let mut stream = node.stream(&path).await;
    stream.next().await.unwrap();
    soon("the third page", node.store.is_held_up()).await;
    assert_eq!(node.feeds.streams(), 1);
    drop(stream);
    node.no_streams_left().await;
    node.store.let_go();
    // No more pages are read for a client that has hung up.
    node.add(&post(&home, "later")).await;
    assert_eq!(node.store.delta_pages(), 3);
    assert_eq!(node.feeds.streams(), 0);
}

/// Hashes that no client would compute: they are made at once.
fn hash(number: u64) -> Hash {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Hash(bytes)
}

fn long(home: &Fact) -> Vec<Fact> {
    let mut graph = vec![home.clone()];
    graph.extend((0..LONG).map(|number| Fact {
        reference: Reference {
            kind: "Post".into(),
            hash: hash(number),
        },
        predecessors: vec![("site".into(), Predecessors::One(home.reference.clone()))],
        fields: "{}".into(),
    }));
    graph
}

/// Two streams: one is opened when all is stored, the other waits for its given, which is saved
/// together with more facts than are looked up one by one.
pub(crate) async fn timeout_long_feeds(database: Database) {
    let limited = Settings {
        stream: Limits {
            max_initial_pages: 30,
            ..long_limits()
        },
        page_size: 1_000,
        ..settings()
    };
    let node = Node::with(&database, limited).await;
    let home = site("home");
    node.save(&[site("other")]).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut waiting = node.stream(&path).await;
    assert_eq!(waiting.until_sync().await.len(), 1);
    saved(&*node.store, &node.bus, &long(&home)).await;
    let mut opened = node.stream(&path).await;
    let last = post(&home, "last");
    for stream in [&mut waiting, &mut opened] {
        let (mut seen, mut frames) = (BTreeSet::new(), 0);
        while seen.len() < usize::try_from(LONG).unwrap() {
            let frame = stream.next().await.unwrap();
            frames += 1;
            let hashes = frame.references.into_iter().map(|fact| fact.hash);
            seen.extend(hashes);
        }
        assert_eq!(frames, 100);
        assert_eq!(seen, (0..LONG).map(hash).collect());
        assert_eq!(stream.until_sync().await.len(), 1);
    }
    // Both are live then.
    node.add(&last).await;
    for mut stream in [waiting, opened] {
        let frames = stream.until_sync().await;
        assert_eq!(received(&frames), references(std::slice::from_ref(&last)));
    }
    node.no_streams_left().await;
}
