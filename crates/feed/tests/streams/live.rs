//! New facts after SYNC.

use futures_util::future::join_all;
use serde_json::json;
use wakeline_feed::{login::USER, service::Settings, signature, store::Principal, stream::Limits};

use crate::{
    blog::{COMMENTS, POSTS, build, comment, fact, post, posts, references, site, sorted},
    database::Database,
    node::{Blog, Node, settings},
    stream_fixture::{long_limits, received},
};

const BURST: usize = 2_000;

pub(crate) async fn post_sync_updates(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.stream(&path).await;
    let mut last = stream.until_sync().await.pop().unwrap();
    assert_eq!(last.bookmark, "");
    for number in 0..5 {
        let new = post(&home, &format!("{number}"));
        node.add(&new).await;
        let frames = stream.until_sync().await;
        assert_eq!(frames.len(), 2, "{frames:?}");
        assert_eq!(received(&frames), references(&[new]));
        assert!(last.place().compare(&frames[0].place()).is_lt());
        last = frames[1].clone();
        assert_eq!(last.bookmark, frames[0].bookmark);
    }
}

pub(crate) async fn waitlist_stress(database: Database) {
    let capped = Settings {
        stream: Limits {
            waitlist_cap: BURST,
            ..long_limits()
        },
        ..settings()
    };
    let node = Node::with(&database, capped).await;
    let Blog { home, path, .. } = node.blog(0).await;
    let mut stream = node.live(&path).await;
    let all = posts(&home, "burst", BURST);
    let saves = all.chunks(BURST / 10).map(|some| {
        let graph = [std::slice::from_ref(&home), some].concat();
        let node = &node;
        async move { node.save(&graph).await }
    });
    let (_, frames) = tokio::join!(join_all(saves), stream.until(BURST));
    let frames = [frames, stream.until_sync().await].concat();
    assert_eq!(sorted(received(&frames)), sorted(references(&all)));
}

pub(crate) async fn a_feed_goes_live_when_its_unresolved_given_is_stored(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    let frames = stream.until_sync().await;
    assert_eq!((frames.len(), &*frames[0].bookmark), (1, ""));
    let first = posts(&home, "first", 3);
    node.save(&[vec![home.clone()], first.clone()].concat())
        .await;
    let frames = stream.until(3).await;
    assert_eq!(received(&frames), references(&first));
    stream.until_sync().await;
    let next = post(&home, "next");
    node.add(&next).await;
    assert_eq!(received(&stream.until_sync().await), references(&[next]));
}

/// Whether it is saved before, while or after the streams look for it, each of them goes on.
pub(crate) async fn an_unresolved_given_may_be_stored_while_streams_open(database: Database) {
    let node = &Node::new(&database).await;
    for round in 0..20 {
        let home = site(&format!("home {round}"));
        let path = &node.declare(POSTS, &[&home]).await;
        let first = post(&home, "first");
        let streams = (0..8).map(|_| async {
            let mut stream = node.stream(path).await;
            received(&stream.until(1).await)
        });
        let graph = [home.clone(), first.clone()];
        let save = node.save(&graph);
        let (all, ()) = tokio::join!(join_all(streams), save);
        for received in all {
            assert_eq!(
                received,
                references(std::slice::from_ref(&first)),
                "{round}"
            );
        }
    }
}

/// A given that is stored after the tuples of its feed.
pub(crate) async fn a_given_stored_later_has_older_tuples(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, posts, .. } = node.blog(2).await;
    let mark = fact("Mark", "mark", &[("site", &home)]);
    let marked = "(m: Mark) { p: Post [p->site: Site = m->site: Site] }";
    let path = node.declare(marked, &[&mark]).await;
    let mut stream = node.stream(&path).await;
    assert_eq!(stream.until_sync().await.len(), 1);
    node.add(&mark).await;
    let frames = stream.until(2).await;
    assert_eq!(sorted(received(&frames)), sorted(references(&posts)));
    stream.until_sync().await;
    // With a bookmark of before it was stored no tuple is missed either.
    let other = fact("Mark", "other", &[("site", &home)]);
    let path = node.declare(marked, &[&other]).await;
    let resumed = format!("{path}?b={}", frames[0].bookmark);
    let mut stream = node.live(&resumed).await;
    node.add(&other).await;
    let again = stream.until(2).await;
    assert_eq!(sorted(received(&again)), sorted(references(&posts)));
    let frames = node.stream(&resumed).await.until_sync().await;
    assert_eq!(sorted(received(&frames)), sorted(references(&posts)));
}

/// A user has a key but no stored fact if a node ended between the two writes.
pub(crate) async fn a_users_fact_stored_later_opens_the_feed(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, posts, .. } = node.blog(2).await;
    let anna = Principal {
        provider: "wakeline".to_owned(),
        id: "anna".to_owned(),
    };
    let store = database.store().await;
    let key = store.store_key(anna, signature::generate().unwrap());
    let key = key.commit(&node.bus);
    let fields = json!({ "publicKey": &*key.await.unwrap().public });
    let user = build(USER, fields, Vec::new());
    let seen_by = "(s: Site, u: Jinaga.User) { p: Post [p->site: Site = s
        !E { h: Hidden [h->post: Post = p h->user: Jinaga.User = u] }] }";
    let path = node.declare(seen_by, &[&home, &user]).await;
    let mut stream = node.stream(&path).await;
    assert_eq!(stream.until_sync().await.len(), 1);
    let answer = node.get_as("anna", "/jinaga/login").await.json();
    assert_eq!(answer["userFact"]["hash"], user.reference.hash.to_string());
    let frames = stream.until(2).await;
    assert_eq!(sorted(received(&frames)), sorted(references(&posts)));
}

pub(crate) async fn read_tuples_are_not_sent_again(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, posts, .. } = node.blog(1).await;
    let old = &posts[0];
    node.add_all(&[&comment(old, "a"), &comment(old, "b")])
        .await;
    let path = node.declare(COMMENTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    let bookmark = stream.until_sync().await.pop().unwrap().bookmark;
    drop(stream);
    let new = comment(old, "new");
    node.add(&new).await;
    let mut stream = node.stream(&format!("{path}?b={bookmark}")).await;
    let frames = stream.until_sync().await;
    // The post is part of the tuple, the other comments are not.
    assert_eq!(received(&frames), references(&[old.clone(), new]));
    let bookmark = frames.last().unwrap().bookmark.clone();
    let mut stream = node.stream(&format!("{path}?b={bookmark}")).await;
    let frames = stream.until_sync().await;
    assert_eq!((frames.len(), &frames[0].bookmark), (1, &bookmark));
}
