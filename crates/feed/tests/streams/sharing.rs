//! The cost of streams: all streams of a feed cost as much as one, and nothing while no fact is
//! saved.

use wakeline_testkit::eventually;

use crate::{
    blog::{COMMENTS, comment, post, references, site},
    database::Database,
    node::{Blog, Node},
    stream_fixture::received,
};

const STREAMS: usize = 10;

pub(crate) async fn streams_of_a_feed_share_its_pages(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, path, .. } = node.blog(10).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = node.stream(&path).await;
        assert_eq!(received(&stream.until_sync().await).len(), 10);
        streams.push(stream);
    }
    assert_eq!(node.store.delta_pages(), 1);
    // A new post has its site as a predecessor: what the log has of it is the page.
    for number in 1..=3 {
        let new = post(&home, &format!("new {number}"));
        node.add(&new).await;
        for stream in &mut streams {
            let frames = stream.until_sync().await;
            assert_eq!(received(&frames), references(std::slice::from_ref(&new)));
        }
    }
    assert_eq!(node.store.delta_pages(), 1);
}

/// A feed of more than one step needs a page, which is read for all streams at once.
pub(crate) async fn live_pages_are_read_once(database: Database) {
    let node = Node::new(&database).await;
    let (home, said) = (site("home"), post(&site("home"), "said"));
    node.save(&[home.clone(), said.clone()]).await;
    let path = node.declare(COMMENTS, &[&home]).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(node.live(&path).await);
    }
    for number in 1..=3 {
        let before = node.store.delta_pages();
        let new = comment(&said, &format!("new {number}"));
        node.add(&new).await;
        for stream in &mut streams {
            let frames = stream.until_sync().await;
            assert_eq!(received(&frames), references(&[said.clone(), new.clone()]));
        }
        // Two outputs are two deltas.
        assert_eq!(node.store.delta_pages() - before, 2);
    }
}

pub(crate) async fn a_save_wakes_only_the_streams_it_can_concern(database: Database) {
    let node = Node::new(&database).await;
    let sites: Vec<_> = (0..STREAMS)
        .map(|number| site(&number.to_string()))
        .collect();
    let said: Vec<_> = sites.iter().map(|site| post(site, "said")).collect();
    node.save(&[sites.clone(), said.clone()].concat()).await;
    let mut streams = Vec::new();
    for site in &sites {
        let path = node.declare(COMMENTS, &[site]).await;
        streams.push(node.live(&path).await);
    }
    let before = node.store.delta_pages();
    for (stream, said) in streams.iter_mut().zip(&said) {
        let new = comment(said, "new");
        node.add(&new).await;
        let frames = stream.until_sync().await;
        assert_eq!(received(&frames), references(&[said.clone(), new]));
    }
    // Two outputs are two deltas, of one stream each time.
    assert_eq!(node.store.delta_pages() - before, 2 * STREAMS);
    // A stream that was woken in vain would have sent a SYNC before this.
    for (stream, said) in streams.iter_mut().zip(&said) {
        let new = comment(said, "newer");
        node.add(&new).await;
        let frame = stream.next().await.unwrap();
        assert_eq!(frame.references, references(&[said.clone(), new]));
    }
}

pub(crate) async fn idle_streams_cost_no_statements(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(node.live(&path).await);
    }
    // For a fact that concerns no stream the log is read, once.
    let waits = || {
        let waiting = node.engine.waiting("feed");
        waiting.iter().map(|topic| topic.waiters).sum::<usize>() == STREAMS + 1
    };
    eventually("all to wait", async || waits()).await;
    let before = node.store.calls();
    let other = site("other");
    node.save(std::slice::from_ref(&other)).await;
    eventually("the log to be read", async || {
        node.store.calls() == before + 2
    })
    .await;
    let new = post(&home, "new");
    node.add(&new).await;
    for stream in &mut streams {
        assert_eq!(received(&stream.until_sync().await).len(), 1);
    }
    // A save and the log, which has the page for all of them; passing time costs nothing.
    assert_eq!(node.store.calls(), before + 2 + 2);
}

pub(crate) async fn a_follower_ends_with_the_last_stream(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, path, .. } = node.blog(0).await;
    drop(node.live(&path).await);
    node.no_streams_left().await;
    let before = node.store.calls();
    for number in 0..5 {
        node.add(&post(&home, &number.to_string())).await;
    }
    assert_eq!(node.store.calls(), before + 5);
    // The next stream starts it again.
    let mut stream = node.stream(&path).await;
    assert_eq!(received(&stream.until_sync().await).len(), 5);
    node.add(&post(&home, "last")).await;
    assert_eq!(received(&stream.until_sync().await).len(), 1);
}
