//! The follower reads new facts for the streams, also after a panic, a failed read or a lost wake.

use std::time::Duration;

use serde_json::json;
use wakeline_bus::Intervals;
use wakeline_feed::{
    fact::{Fact, Predecessors},
    store::{ConcernQuery, MAX_CONCERNS, Queries},
};
use wakeline_testkit::{eventually, local_bus};

use crate::{
    blog::{COMMENTS, build, comment, fact, feed, post, references, saved},
    database::Database,
    node::{Blog, Node},
    stream_fixture::{StreamFixture, received, until_sync},
};

/// Predecessors under each of two roles; their product is above the limit of concerns.
const MANY: usize = 250;

/// The engine takes one waiter, which is the stream.
pub(crate) async fn a_full_node_follows_the_log(database: Database) {
    let node = Node::crowded(&database, 1).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.live(&path).await;
    for name in ["one", "two"] {
        let new = post(&home, name);
        node.add(&new).await;
        assert_eq!(received(&stream.until_sync().await), references(&[new]));
    }
    drop(stream);
    node.no_streams_left().await;
}

pub(crate) async fn a_follower_goes_on_after_a_panic(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.live(&path).await;
    node.store.panic_once();
    let new = post(&home, "new");
    node.add(&new).await;
    assert_eq!(received(&stream.until_sync().await), references(&[new]));
}

/// The streams of a query whose look-up fails read for themselves; all others are served as before.
pub(crate) async fn a_failed_lookup_stops_no_stream(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, posts, path } = node.blog(1).await;
    let old = &posts[0];
    let comments = node.declare(COMMENTS, &[&home]).await;
    let mut posts = node.live(&path).await;
    let mut comments = node.live(&comments).await;
    node.store.refuse_concerns();
    let about = comment(old, "about");
    let next = post(&home, "next");
    node.add(&about).await;
    node.add(&next).await;
    assert_eq!(received(&posts.until_sync().await), references(&[next]));
    let frames = comments.until_sync().await;
    assert_eq!(received(&frames), references(&[old.clone(), about]));
}

/// A fact with many predecessors, and one below it.
pub(crate) async fn many_predecessors_do_not_multiply(database: Database) {
    let fixture = StreamFixture::new(database, 10).await;
    let all =
        |kind: &str| -> Vec<Fact> { (0..MANY).map(|number| fact(kind, number, &[])).collect() };
    let (ones, others) = (all("One"), all("Other"));
    let roles = [("one", &ones), ("other", &others)].map(|(role, facts)| {
        let references = references(facts);
        (role.into(), Predecessors::Many(references))
    });
    let both = build("Both", json!({}), roles.to_vec());
    fixture.save(&[ones.clone(), others.clone()].concat()).await;
    let feed = feed(
        "(a: One, b: Other) { c: Both [c->one: One = a c->other: Other = b] d: Last [d->both: Both = c] }",
        &[&ones[7], &others[11]],
    );
    let mut stream = fixture.stream(&feed);
    until_sync(&mut stream).await;
    let last = fact("Last", "last", &[("both", &both)]);
    fixture.save(std::slice::from_ref(&both)).await;
    let at = fixture.save(std::slice::from_ref(&last)).await;
    let frames = until_sync(&mut stream).await;
    assert_eq!(received(&frames), references(&[both, last]));
    let found = fixture.store.concerns(ConcernQuery {
        query: feed.query.clone(),
        variable: *feed.query.outputs.last().unwrap(),
        facts: vec![at],
        watched: Vec::new(),
    });
    assert_eq!(found.await.unwrap().len(), MAX_CONCERNS);
}

/// A save that wakes no follower is found by the periodic recheck, and the answer says so.
pub(crate) async fn a_lost_wake_is_made_up_for_by_the_fallback(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, path, .. } = node.blog(1).await;
    let mut stream = node.stream(&path).await;
    let bookmark = stream.until_sync().await.pop().unwrap().bookmark;
    let path = format!("{path}?b={bookmark}");
    let wait = [("Prefer", "wait=30")];
    let held = node.get(&path, &wait);
    let new = post(&home, "new");
    let losing = async {
        eventually("all to be held", async || node.engine.held() == 3).await;
        // On a bus that no follower waits on.
        saved(&*node.store, &local_bus(), std::slice::from_ref(&new)).await;
        let often = Duration::from_millis(20);
        tokio::spawn(wakeline_bus::watch(
            node.bus.clone(),
            node.engine.clone(),
            vec![node.feeds.clone()],
            Intervals {
                fallback: often,
                degraded: often,
            },
        ));
    };
    let (answer, ()) = tokio::join!(held, losing);
    let timing = answer.head.header("server-timing").unwrap();
    assert!(timing.contains("wake;desc=\"fallback\""), "{timing}");
    let new = references(&[new]);
    assert_eq!(answer.page().references, new);
    assert_eq!(received(&stream.until_sync().await), new);
}
