//! What streams cost: together what one costs, and nothing while nothing happens.

use wakeline_testkit::eventually;

use crate::{
    database::Database,
    facts::{COMMENTS, POSTS, comment, post, posts, references, site},
    node::Node,
    stream_fixture::received,
};

const STREAMS: usize = 10;

pub(crate) async fn streams_of_a_feed_share_its_pages(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(&[vec![home.clone()], posts(&home, "post", 10)].concat())
        .await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = node.stream(&path).await;
        assert_eq!(received(&stream.until_sync().await).len(), 10);
        streams.push(stream);
    }
    assert_eq!(node.store.delta_pages(), 1);
    // A new post says itself whose it is: what the log has of it is the page.
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

/// Of feeds with more than one step a page is asked for, for all streams at once.
pub(crate) async fn live_pages_are_asked_for_once(database: Database) {
    let node = Node::new(&database).await;
    let (home, said) = (site("home"), post(&site("home"), "said"));
    node.save(&[home.clone(), said.clone()]).await;
    let path = node.declare(COMMENTS, &[&home]).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = node.stream(&path).await;
        stream.until_sync().await;
        streams.push(stream);
    }
    for number in 1..=3 {
        let before = node.store.delta_pages();
        let new = comment(&said, &format!("new {number}"));
        node.add(&new).await;
        for stream in &mut streams {
            let frames = stream.until_sync().await;
            assert_eq!(received(&frames), references(&[said.clone(), new.clone()]));
        }
        // Two outputs are two slices.
        assert_eq!(node.store.delta_pages() - before, 2);
    }
}

pub(crate) async fn a_save_wakes_only_whom_it_can_concern(database: Database) {
    let node = Node::new(&database).await;
    let sites: Vec<_> = (0..STREAMS)
        .map(|number| site(&number.to_string()))
        .collect();
    let said: Vec<_> = sites.iter().map(|site| post(site, "said")).collect();
    node.save(&[sites.clone(), said.clone()].concat()).await;
    let mut streams = Vec::new();
    for site in &sites {
        let path = node.declare(COMMENTS, &[site]).await;
        let mut stream = node.stream(&path).await;
        stream.until_sync().await;
        streams.push(stream);
    }
    let before = node.store.delta_pages();
    for (stream, said) in streams.iter_mut().zip(&said) {
        let new = comment(said, "new");
        node.add(&new).await;
        let frames = stream.until_sync().await;
        assert_eq!(received(&frames), references(&[said.clone(), new]));
    }
    // Two outputs are two slices, of one stream each time.
    assert_eq!(node.store.delta_pages() - before, 2 * STREAMS);
    // Of a stream that was woken in vain there would be a SYNC before this.
    for (stream, said) in streams.iter_mut().zip(&said) {
        let new = comment(said, "newer");
        node.add(&new).await;
        let frame = stream.next().await.unwrap();
        assert_eq!(frame.references, references(&[said.clone(), new]));
    }
}

pub(crate) async fn nothing_is_asked_while_nothing_happens(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = node.stream(&path).await;
        stream.until_sync().await;
        streams.push(stream);
    }
    // Of something that concerns nobody the log is read, once.
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
    // A save and the log, which has the page for all of them; of time that passes, nothing.
    assert_eq!(node.store.calls(), before + 2 + 2);
}

pub(crate) async fn a_follower_ends_with_the_last_stream(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    stream.until_sync().await;
    drop(stream);
    node.is_left().await;
    let before = node.store.calls();
    for number in 0..5 {
        node.add(&post(&home, &number.to_string())).await;
    }
    assert_eq!(node.store.calls(), before + 5);
    // Who comes next starts it again.
    let mut stream = node.stream(&path).await;
    assert_eq!(received(&stream.until_sync().await).len(), 5);
    node.add(&post(&home, "last")).await;
    assert_eq!(received(&stream.until_sync().await).len(), 1);
}
