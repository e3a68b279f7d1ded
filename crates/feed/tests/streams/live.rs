//! What comes after SYNC.

use wakeline_feed::{
    fact::Fact, json, login::USER, service::Settings, signature, store::Principal, stream::Limits,
};

use crate::{
    database::Database,
    facts::{COMMENTS, POSTS, comment, fact, post, posts, references, site, sorted},
    node::{Node, settings},
    stream_fixture::{long_limits, received},
};

const BURST: usize = 2_000;

pub(crate) async fn post_sync_updates(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
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
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    stream.until_sync().await;
    let all = posts(&home, "burst", BURST);
    let saves = all.chunks(BURST / 10).map(|some| {
        let graph = [std::slice::from_ref(&home), some].concat();
        let node = &node;
        async move { node.save(&graph).await }
    });
    let (_, frames) = tokio::join!(futures_util::future::join_all(saves), stream.until(BURST));
    let frames = [frames, stream.until_sync().await].concat();
    assert_eq!(sorted(received(&frames)), sorted(references(&all)));
}

pub(crate) async fn an_unresolved_given_that_comes_later(database: Database) {
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

/// Whether it comes before, while or after the streams look for it, each of them gets it.
pub(crate) async fn an_unresolved_given_that_comes_while_streams_open(database: Database) {
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
        let (got, ()) = tokio::join!(futures_util::future::join_all(streams), save);
        for received in got {
            assert_eq!(
                received,
                references(std::slice::from_ref(&first)),
                "{round}"
            );
        }
    }
}

/// A feed between two givens: one of them comes long after what stands below it.
pub(crate) async fn a_given_that_comes_later_brings_what_is_older(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let old = posts(&home, "old", 2);
    node.save(&[vec![home.clone()], old.clone()].concat()).await;
    let mark = fact("Mark", "mark", &[("site", &home)]);
    let marked = "(m: Mark) { p: Post [p->site: Site = m->site: Site] }";
    let path = node.declare(marked, &[&mark]).await;
    let mut stream = node.stream(&path).await;
    assert_eq!(stream.until_sync().await.len(), 1);
    node.add(&mark).await;
    let frames = stream.until(2).await;
    assert_eq!(sorted(received(&frames)), sorted(references(&old)));
    stream.until_sync().await;
    // A bookmark of before it came misses nothing either.
    let other = fact("Mark", "other", &[("site", &home)]);
    let path = node.declare(marked, &[&other]).await;
    let request_text = format!("{path}?b={}", frames[0].bookmark);
    let mut stream = node.stream(&request_text).await;
    stream.until_sync().await;
    node.add(&other).await;
    let again = stream.until(2).await;
    assert_eq!(sorted(received(&again)), sorted(references(&old)));
    let request_text = format!("{path}?b={}", frames[0].bookmark);
    let frames = node.stream(&request_text).await.until_sync().await;
    assert_eq!(sorted(received(&frames)), sorted(references(&old)));
}

/// A user has a key before their fact is stored, where a node ended between the two.
pub(crate) async fn a_user_who_comes_later_is_heard_of(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let old = posts(&home, "old", 2);
    node.save(&[vec![home.clone()], old.clone()].concat()).await;
    let anna = Principal {
        provider: "wakeline".to_owned(),
        id: "anna".to_owned(),
    };
    let store = database.store().await;
    let key = store.store_key(anna, signature::generate().unwrap());
    let key = key.commit(&node.bus);
    let fields = serde_json::json!({ "publicKey": &*key.await.unwrap().public }).to_string();
    let user = Fact::new(USER.into(), Vec::new(), &json::parse(&fields).unwrap()).unwrap();
    let seen_by = "(s: Site, u: Jinaga.User) { p: Post [p->site: Site = s
        !E { h: Hidden [h->post: Post = p h->user: Jinaga.User = u] }] }";
    let path = node.declare(seen_by, &[&home, &user]).await;
    let mut stream = node.stream(&path).await;
    assert_eq!(stream.until_sync().await.len(), 1);
    let answer = node.get_as("anna", "/jinaga/login").await.json();
    assert_eq!(answer["userFact"]["hash"], user.reference.hash.to_string());
    let frames = stream.until(2).await;
    assert_eq!(sorted(received(&frames)), sorted(references(&old)));
}

pub(crate) async fn what_was_read_is_not_sent_again(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let said = post(&home, "said");
    let old = ["a", "b"].map(|name| comment(&said, name));
    node.save(&[&[home.clone(), said.clone()], &old[..]].concat())
        .await;
    let path = node.declare(COMMENTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    let bookmark = stream.until_sync().await.pop().unwrap().bookmark;
    drop(stream);
    let new = comment(&said, "new");
    node.add(&new).await;
    let mut stream = node.stream(&format!("{path}?b={bookmark}")).await;
    let frames = stream.until_sync().await;
    // The post is part of the tuple, the other comments are not.
    assert_eq!(received(&frames), references(&[said, new]));
    let bookmark = frames.last().unwrap().bookmark.clone();
    let mut stream = node.stream(&format!("{path}?b={bookmark}")).await;
    let frames = stream.until_sync().await;
    assert_eq!((frames.len(), &frames[0].bookmark), (1, &bookmark));
}
