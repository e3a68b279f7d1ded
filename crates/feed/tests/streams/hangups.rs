//! A caller that hangs up while its write commits: what is committed is heard of all the same.

use wakeline_feed::{
    fact::Fact,
    json,
    login::{Caller, USER},
    signature,
    store::{Keys, Principal},
};

use crate::{
    database::Database,
    door::eventually,
    facts::{POSTS, envelopes, post, posts, references, site, sorted},
    node::Node,
    stand::received,
};

/// Runs `call` while nothing can be saved, and drops it as soon as it has asked the store so often.
async fn hang_up(
    database: &Database,
    node: &Node,
    questions: usize,
    call: impl Future<Output = ()> + Send + 'static,
) {
    let blocked = database.block_saves().await;
    let before = node.store.asked();
    let call = tokio::spawn(call);
    eventually("the save to be asked for", async || {
        node.store.asked() >= before + questions && blocked.holds_somebody_up().await
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

pub(crate) async fn a_first_login_whose_caller_has_gone_is_heard_of(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let old = posts(&home, "old", 2);
    node.save(&[vec![home.clone()], old.clone()].concat()).await;
    // So that the type of users is known, and a login saves one fact and nothing else.
    node.get_as("somebody", "/jinaga/login").await;
    let anna = Principal {
        provider: "wakeline".to_owned(),
        id: "anna".to_owned(),
    };
    let key = node
        .store
        .keep_key(anna.clone(), signature::generate().unwrap());
    let key = key.commit(&node.bus).await.unwrap();
    let fields = serde_json::json!({ "publicKey": &*key.public }).to_string();
    let user = Fact::new(USER.into(), Vec::new(), &json::parse(&fields).unwrap()).unwrap();
    let seen_by = "(s: Site, u: Jinaga.User) { p: Post [p->site: Site = s
        !E { h: Hidden [h->post: Post = p h->user: Jinaga.User = u] }] }";
    let path = node.declare(seen_by, &[&home, &user]).await;
    let mut stream = node.stream(&path).await;
    assert_eq!(stream.until_sync().await.len(), 1);

    let feeds = node.feeds.clone();
    let login = async move {
        let caller = Caller {
            principal: Some(anna),
            display_name: String::new(),
        };
        feeds.user(&caller).await.unwrap();
    };
    // The key, and the save.
    hang_up(&database, &node, 2, login).await;
    let frames = stream.until(2).await;
    assert_eq!(sorted(received(&frames)), sorted(references(&old)));
}
