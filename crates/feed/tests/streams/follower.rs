//! Who reads what is saved and tells the streams: whatever happens to it, streams are told.

use std::time::Duration;

use wakeline_bus::{Bus, Intervals};
use wakeline_feed::{
    fact::{Fact, Predecessors},
    json,
    store::{ConcernQuery, MAX_CONCERNS, Queries},
};
use wakeline_testkit::eventually;
use wakeline_wake::{Engine, Limits};

use crate::{
    database::Database,
    facts::{COMMENTS, POSTS, comment, fact, feed, post, references, saved, site},
    node::Node,
    stream_fixture::{StreamFixture, received, until_sync},
};

/// Of each of two roles; their product is more than is told.
const MANY: usize = 250;

/// The stream itself has the only place to wait.
pub(crate) async fn a_full_node_hears_what_is_saved(database: Database) {
    let node = Node::crowded(&database, 1).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    stream.until_sync().await;
    for name in ["one", "two"] {
        let new = post(&home, name);
        node.add(&new).await;
        assert_eq!(received(&stream.until_sync().await), references(&[new]));
    }
    drop(stream);
    node.is_left().await;
}

pub(crate) async fn a_panic_is_survived(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    stream.until_sync().await;
    node.store.panic_once();
    let new = post(&home, "new");
    node.add(&new).await;
    assert_eq!(received(&stream.until_sync().await), references(&[new]));
}

/// Whom a refused question was for looks for itself; all others are told as ever.
pub(crate) async fn a_question_that_is_refused_stops_nobody(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let said = post(&home, "said");
    node.save(&[home.clone(), said.clone()]).await;
    let posts = node.declare(POSTS, &[&home]).await;
    let comments = node.declare(COMMENTS, &[&home]).await;
    let mut posts = node.stream(&posts).await;
    let mut comments = node.stream(&comments).await;
    posts.until_sync().await;
    comments.until_sync().await;
    node.store.refuse_concerned();
    let heard = comment(&said, "heard");
    let next = post(&home, "next");
    node.add(&heard).await;
    node.add(&next).await;
    assert_eq!(received(&posts.until_sync().await), references(&[next]));
    let frames = comments.until_sync().await;
    assert_eq!(received(&frames), references(&[said, heard]));
}

/// A fact with many predecessors, and one below it.
pub(crate) async fn many_predecessors_are_no_product(database: Database) {
    let fixture = StreamFixture::new(database, 10).await;
    let all = |kind: &str| -> Vec<Fact> {
        let name = |number: usize| fact(kind, &number.to_string(), &[]);
        (0..MANY).map(name).collect()
    };
    let (ones, others) = (all("One"), all("Other"));
    let roles = [("one", &ones), ("other", &others)].map(|(role, facts)| {
        let references = references(facts);
        (role.into(), Predecessors::Many(references))
    });
    let fields = json::parse("{}").unwrap();
    let both = Fact::new("Both".into(), roles.to_vec(), &fields).unwrap();
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

/// SaveOutcome without a word to anybody: the periodic question to the store finds it, and the
/// answer says so.
pub(crate) async fn a_lost_hint_is_found_again(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(&[home.clone(), post(&home, "old")]).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    let bookmark = stream.until_sync().await.pop().unwrap().bookmark;
    let path = format!("{path}?b={bookmark}");
    let wait = [("Prefer", "wait=30")];
    let held = node.get(&path, &wait);
    let new = post(&home, "new");
    let losing = async {
        eventually("all to be held", async || node.engine.held() == 3).await;
        // On a bus that no follower hears.
        let elsewhere = Bus::local(Engine::new(Limits::default()));
        saved(&*node.store, &elsewhere, std::slice::from_ref(&new)).await;
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
