//! Removals, through the door.

use wakeline_feed::{fact::Fact, policy::Policies, policy_file::PolicyFile};
use wakeline_testkit::eventually;

use crate::{
    client::{Answer, request},
    database::Database,
    facts::{POSTS, fact, posts, request_text, site},
    node::{Node, settings},
};

const OPEN: &str = "
authorization { any Site any Post any Site.Deleted }
distribution { share (s: Site) { p: Post [p->site: Site = s] } with everyone }";
const PURGE: &str = "purge { (s: Site) { x: Site.Deleted [x->site: Site = s] } }";

async fn node(database: &Database, rules: &str) -> Node {
    let policies = Policies::new(&PolicyFile::parse(rules).unwrap()).unwrap();
    Node::ruled(database, settings(), Some(policies)).await
}

async fn ask(node: &Node, path: &str, given: &Fact) -> Answer {
    let headers = [
        ("Content-Type", "text/plain"),
        ("Accept", "application/json"),
    ];
    let text = request_text(POSTS, &[given]) + " => p";
    request(node.address, path, &headers, &text).await
}

async fn are_stored(node: &Node, facts: &[Fact]) -> Vec<bool> {
    use wakeline_feed::store::Facts;
    let references = facts.iter().map(|fact| fact.reference.clone()).collect();
    let found = node.store.find(references).await.unwrap();
    found.iter().map(Option::is_some).collect()
}

pub(crate) async fn what_is_deleted_is_purged_after_the_save(database: Database) {
    let node = node(&database, &format!("{OPEN} {PURGE}")).await;
    let (home, other) = (site("home"), site("other"));
    let mut facts = posts(&home, "post", 3);
    facts.extend(posts(&other, "other", 1));
    node.save(&[vec![home.clone(), other.clone()], facts.clone()].concat())
        .await;
    node.add(&fact("Site.Deleted", "x", &[("site", &home)]))
        .await;
    eventually("the posts to be purged", async || {
        are_stored(&node, &facts).await == [false, false, false, true]
    })
    .await;
    assert_eq!(are_stored(&node, &[home, other]).await, [true, true]);
}

pub(crate) async fn a_specification_must_leave_out_what_is_purged(database: Database) {
    let purge = "purge { (p: Post) { x: Post.Deleted [x->post: Post = p] } }";
    let node = node(&database, &format!("{OPEN} {purge}")).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    for path in ["POST /jinaga/feeds", "POST /jinaga/read"] {
        let answer = ask(&node, path, &home).await;
        assert_eq!(answer.head.status, 400, "{path}: {answer:?}");
        assert!(answer.body.contains("Post.Deleted"), "{path}: {answer:?}");
    }
    let open = self::node(&database, OPEN).await;
    for path in ["POST /jinaga/feeds", "POST /jinaga/read"] {
        let answer = ask(&open, path, &home).await;
        assert_eq!(answer.head.status, 200, "{path}: {answer:?}");
    }
}

pub(crate) async fn a_server_that_starts_purges_what_is_deleted_already(database: Database) {
    let home = site("home");
    let facts = posts(&home, "post", 3);
    let before = node(&database, OPEN).await;
    before
        .save(&[vec![home.clone()], facts.clone()].concat())
        .await;
    before
        .add(&fact("Site.Deleted", "x", &[("site", &home)]))
        .await;
    assert_eq!(are_stored(&before, &facts).await, [true; 3]);
    let after = node(&database, &format!("{OPEN} {PURGE}")).await;
    let tidying = tokio::spawn(after.feeds.clone().tidy());
    eventually("the posts to be purged", async || {
        are_stored(&after, &facts).await == [false; 3]
    })
    .await;
    tidying.abort();
}
