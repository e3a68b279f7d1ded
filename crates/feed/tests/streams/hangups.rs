//! A caller that hangs up while its write commits: what is committed is heard of all the same.

use wakeline_feed::{
    fact::Fact,
    json,
    login::{Caller, USER},
    policy::Policies,
    policy_file::PolicyFile,
    signature,
    store::{Keys, Principal},
};
use wakeline_testkit::eventually;

use crate::{
    database::Database,
    facts::{POSTS, envelopes, post, posts, references, request_text, site, sorted},
    node::{Node, settings},
    stream_fixture::received,
};

/// Runs `call` while nothing can be saved, and drops it as soon as it has asked the store so often.
async fn hang_up(
    database: &Database,
    node: &Node,
    questions: usize,
    call: impl Future<Output = ()> + Send + 'static,
) {
    let _blocked = database.block_saves().await;
    let before = node.store.calls();
    let call = tokio::spawn(call);
    eventually("the save to be request_text for", async || {
        node.store.calls() >= before + questions && database.is_write_blocked().await
    })
    .await;
    // A task that is running is dropped when it waits for the answer, not before.
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
}

pub(crate) async fn a_save_whose_caller_has_gone_is_heard_of(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    node.save(&[home.clone(), post(&home, "old")]).await;
    let path = node.declare(POSTS, &[&home]).await;
    let mut stream = node.stream(&path).await;
    stream.until_sync().await;

    let new = post(&home, "new");
    let (feeds, sent) = (node.feeds.clone(), envelopes(std::slice::from_ref(&new)));
    let save = async move {
        let saved = feeds.save(&Caller::anonymous(), sent.to_vec()).await;
        saved.unwrap();
    };
    hang_up(&database, &node, 1, save).await;
    assert_eq!(received(&stream.until(1).await), references(&[new]));
}

/// Every route that may be somebody's first: each stores the user's fact before it does anything
/// else.
const FIRST_CALLS: [&str; 4] = ["login", "feeds", "load", "read"];

const SEEN_BY: &str = "(s: Site, u: Jinaga.User) { p: Post [p->site: Site = s
    !E { h: Hidden [h->post: Post = p h->user: Jinaga.User = u] }] }";

pub(crate) async fn a_first_login_whose_caller_has_gone_is_heard_of(database: Database) {
    // With rules a load asks who its caller is too.
    let rules = format!(
        "authorization {{ any Site any Post }} distribution {{ share {SEEN_BY} with everyone }}"
    );
    let policies = Policies::new(&PolicyFile::parse(&rules).unwrap()).unwrap();
    let node = Node::ruled(&database, settings(), Some(policies)).await;
    let home = site("home");
    let old = posts(&home, "old", 2);
    node.save(&[vec![home.clone()], old.clone()].concat()).await;
    // So that the type of users is known, and a login saves one fact and nothing else.
    node.get_as("somebody", "/jinaga/login").await;
    for route in FIRST_CALLS {
        let principal = Principal {
            provider: "wakeline".to_owned(),
            id: route.to_owned(),
        };
        let key = signature::generate().unwrap();
        let key = node.store.store_key(principal.clone(), key);
        let key = key.commit(&node.bus).await.unwrap();
        let fields = serde_json::json!({ "publicKey": &*key.public }).to_string();
        let user = Fact::new(USER.into(), Vec::new(), &json::parse(&fields).unwrap()).unwrap();
        let path = node.declare(SEEN_BY, &[&home, &user]).await;
        let mut stream = node.stream(&path).await;
        assert_eq!(stream.until_sync().await.len(), 1);

        let (feeds, text) = (node.feeds.clone(), request_text(SEEN_BY, &[&home, &user]));
        let call = async move {
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
        hang_up(&database, &node, 2, call).await;
        let frames = stream.until(2).await;
        assert_eq!(
            sorted(received(&frames)),
            sorted(references(&old)),
            "{route}"
        );
    }
}
