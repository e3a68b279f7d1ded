//! A caller hangs up while its write commits: the commit wakes the streams all the same.

use serde_json::json;
use wakeline_feed::{
    login::{Caller, USER},
    policy::Policies,
    policy_file::PolicyFile,
    signature,
    store::{Keys, Principal},
};
use wakeline_testkit::eventually;

use crate::{
    blog::{build, envelopes, post, references, request_text, sorted},
    database::Database,
    node::{Blog, Node, settings},
    stream_fixture::received,
};

/// Runs a request while no fact can be saved, and drops it after so many calls of the store.
async fn hang_up(
    database: &Database,
    node: &Node,
    calls: usize,
    request: impl Future<Output = ()> + Send + 'static,
) {
    let _blocked = database.block_writes("feed_fact").await;
    let before = node.store.calls();
    let request = tokio::spawn(request);
    eventually("the save to begin", async || {
        node.store.calls() >= before + calls && database.is_write_blocked().await
    })
    .await;
    // A task that is running is dropped when it waits for the store, not before.
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
}

pub(crate) async fn a_save_whose_caller_hung_up_wakes_streams(database: Database) {
    let node = Node::new(&database).await;
    let Blog { home, path, .. } = node.blog(1).await;
    let mut stream = node.live(&path).await;
    let new = post(&home, "new");
    let (feeds, sent) = (node.feeds.clone(), envelopes(std::slice::from_ref(&new)));
    let save = async move {
        let saved = feeds.save(&Caller::anonymous(), sent.to_vec()).await;
        saved.unwrap();
    };
    hang_up(&database, &node, 1, save).await;
    assert_eq!(received(&stream.until(1).await), references(&[new]));
}

/// Every route that may be a user's first: each stores the user's fact before it does anything else.
const FIRST_CALLS: [&str; 4] = ["login", "feeds", "load", "read"];

const SEEN_BY: &str = "(s: Site, u: Jinaga.User) { p: Post [p->site: Site = s
    !E { h: Hidden [h->post: Post = p h->user: Jinaga.User = u] }] }";

pub(crate) async fn a_first_login_whose_caller_hung_up_wakes_streams(database: Database) {
    // With rules a load needs its caller's fact, too.
    let rules = format!(
        "authorization {{ any Site any Post }} distribution {{ share {SEEN_BY} with everyone }}"
    );
    let policies = Policies::new(&PolicyFile::parse(&rules).unwrap()).unwrap();
    let node = Node::ruled(&database, settings(), Some(policies)).await;
    let Blog { home, posts, .. } = node.blog(2).await;
    // So that the type of users is stored, and a login saves only a fact.
    node.get_as("another", "/jinaga/login").await;
    for route in FIRST_CALLS {
        let principal = Principal {
            provider: "wakeline".to_owned(),
            id: route.to_owned(),
        };
        let key = signature::generate().unwrap();
        let key = node.store.store_key(principal.clone(), key);
        let key = key.commit(&node.bus).await.unwrap();
        let user = build(USER, json!({ "publicKey": &*key.public }), Vec::new());
        let path = node.declare(SEEN_BY, &[&home, &user]).await;
        let mut stream = node.stream(&path).await;
        assert_eq!(stream.until_sync().await.len(), 1);

        let (feeds, text) = (node.feeds.clone(), request_text(SEEN_BY, &[&home, &user]));
        let request = async move {
            let caller = Caller {
                principal: Some(principal),
                display_name: String::new(),
            };
            match route {
                "feeds" => drop(feeds.declare(&caller, &text).await),
                "load" => drop(feeds.load(&caller, Vec::new()).await),
                "read" => drop(feeds.read(&caller, &text).await),
                _ => drop(feeds.user(&caller).await),
            }
        };
        // The key, and the save.
        hang_up(&database, &node, 2, request).await;
        let frames = stream.until(2).await;
        assert_eq!(
            sorted(received(&frames)),
            sorted(references(&posts)),
            "{route}"
        );
    }
}
