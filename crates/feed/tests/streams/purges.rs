//! Removals, through the door.

use wakeline_feed::{fact::Fact, policy::Policies, policy_file::PolicyFile, store::Facts};
use wakeline_testkit::eventually;

use crate::{
    blog::{POSTS, fact, posts, request_text, site},
    database::Database,
    node::{Blog, Node, TEXT, settings},
};

const OPEN: &str = "
authorization { any Site any Post any Site.Deleted }
distribution { share (s: Site) { p: Post [p->site: Site = s] } with everyone }";
const PURGE: &str = "purge { (s: Site) { x: Site.Deleted [x->site: Site = s] } }";

async fn node(database: &Database, rules: &str) -> Node {
    let policies = Policies::new(&PolicyFile::parse(rules).unwrap()).unwrap();
    Node::ruled(database, settings(), Some(policies)).await
}

async fn are_stored(node: &Node, facts: &[Fact]) -> Vec<bool> {
    let references = facts.iter().map(|fact| fact.reference.clone());
    let found = node.store.find(references.collect()).await.unwrap();
    found.iter().map(Option::is_some).collect()
}

pub(crate) async fn deleted_facts_are_purged_after_the_save(database: Database) {
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

pub(crate) async fn a_specification_must_exclude_purged_facts(database: Database) {
    let purge = "purge { (p: Post) { x: Post.Deleted [x->post: Post = p] } }";
    let node = node(&database, &format!("{OPEN} {purge}")).await;
    let open = self::node(&database, OPEN).await;
    let text = request_text(POSTS, &[&open.blog(0).await.home]) + " => p";
    for path in ["/jinaga/feeds", "/jinaga/read"] {
        let answer = node.post("", path, TEXT, &text).await;
        assert_eq!(answer.head.status, 400, "{path}: {answer:?}");
        assert!(answer.body.contains("Post.Deleted"), "{path}: {answer:?}");
        let answer = open.post("", path, TEXT, &text).await;
        assert_eq!(answer.head.status, 200, "{path}: {answer:?}");
    }
}

pub(crate) async fn a_starting_server_purges_facts_deleted_before(database: Database) {
    let before = node(&database, OPEN).await;
    let Blog { home, posts, .. } = before.blog(3).await;
    let deleted = fact("Site.Deleted", "x", &[("site", &home)]);
    before.add(&deleted).await;
    assert_eq!(are_stored(&before, &posts).await, [true; 3]);
    let after = node(&database, &format!("{OPEN} {PURGE}")).await;
    let tidying = tokio::spawn(after.feeds.clone().tidy());
    eventually("the posts to be purged", async || {
        are_stored(&after, &posts).await == [false; 3]
    })
    .await;
    tidying.abort();
}
