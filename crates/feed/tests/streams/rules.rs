//! Streams under distribution rules.

use wakeline_feed::{
    fact::{Fact, Hash, Predecessors, Reference},
    json,
    policy::Policies,
};

use crate::{
    client::{Frame, Stream},
    database::Database,
    facts::{POSTS, post, posts, references, site},
    node::{Node, settings},
    stand::received,
};

const RULES: &str = "
authorization { any Site any Post any Member any Jinaga.User }
distribution {
    share (s: Site) { p: Post [p->site: Site = s] }
    with (s: Site) {
        m: Member [m->site: Site = s]
        u: Jinaga.User [u = m->user: Jinaga.User]
    } => u
}";

pub(crate) async fn ruled(database: &Database) -> Node {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("blog.policy"), RULES).unwrap();
    let policies = Policies::read(directory.path()).unwrap();
    Node::ruled(database, settings(), policies).await
}

/// Whom the server calls by this name.
pub(crate) async fn user(node: &Node, name: &str) -> Reference {
    let said = node.get_as(name, "/jinaga/login").await.json();
    Reference {
        kind: "Jinaga.User".into(),
        hash: Hash::read(said["userFact"]["hash"].as_str().unwrap()).unwrap(),
    }
}

pub(crate) fn member(site: &Fact, user: &Reference) -> Fact {
    let predecessors = vec![
        ("site".into(), Predecessors::One(site.reference.clone())),
        ("user".into(), Predecessors::One(user.clone())),
    ];
    Fact::new("Member".into(), predecessors, &json::parse("{}").unwrap()).unwrap()
}

async fn denied(stream: &mut Stream) -> Frame {
    let frame = stream.next().await.unwrap();
    assert!(frame.is_denied(), "{frame:?}");
    assert_eq!(frame.said["decision"], "denied");
    assert_eq!(frame.said["code"], "principal-excluded");
    assert!(frame.references.is_empty());
    frame
}

pub(crate) async fn a_denied_feed_says_so_and_goes_live(database: Database) {
    let node = ruled(&database).await;
    let home = site("home");
    let old = posts(&home, "old", 3);
    node.save(&[vec![home.clone()], old.clone()].concat()).await;
    let anna = user(&node, "anna").await;
    let path = node.declare_as("anna", POSTS, &[&home]).await;
    let mut stream = node.stream_as("anna", &path).await;
    denied(&mut stream).await;
    node.add(&member(&home, &anna)).await;
    let frames = stream.until(3).await;
    assert_eq!(received(&frames), references(&old));
    stream.until_sync().await;
    let new = post(&home, "new");
    node.add(&new).await;
    assert_eq!(received(&stream.until_sync().await), references(&[new]));
}

pub(crate) async fn a_denied_feed_stays_silent_about_what_comes(database: Database) {
    let node = ruled(&database).await;
    let home = site("home");
    let old = posts(&home, "old", 3);
    node.save(&[vec![home.clone()], old.clone()].concat()).await;
    let (anna, ben) = (user(&node, "anna").await, user(&node, "ben").await);
    let path = node.declare_as("anna", POSTS, &[&home]).await;
    let mut stream = node.stream_as("anna", &path).await;
    denied(&mut stream).await;
    let mut all = old;
    // It is saved, and another is let in: none of it is for Anna.
    for number in 0..3 {
        let new = post(&home, &format!("new {number}"));
        node.add(&new).await;
        all.push(new);
    }
    node.add(&member(&home, &ben)).await;
    node.add(&member(&home, &anna)).await;
    let mut frames = Vec::new();
    while received(&frames).len() < all.len() {
        frames.push(stream.next().await.unwrap());
    }
    // All of it came when she was let in, in one page.
    let with_facts = frames.iter().filter(|frame| !frame.references.is_empty());
    assert_eq!(with_facts.count(), 1, "{frames:?}");
    let before = &frames[..frames.len() - 1];
    assert!(before.iter().all(Frame::is_denied), "{frames:?}");
    assert_eq!(received(&frames), references(&all));
}

pub(crate) async fn a_denied_page_is_empty(database: Database) {
    let node = ruled(&database).await;
    let home = site("home");
    node.save(&[vec![home.clone()], posts(&home, "old", 3)].concat())
        .await;
    let anna = user(&node, "anna").await;
    let path = node.declare_as("anna", POSTS, &[&home]).await;
    let page = node.get_as("anna", &path).await.page();
    assert!(page.references.is_empty());
    node.add(&member(&home, &anna)).await;
    let page = node.get_as("anna", &path).await.page();
    assert_eq!(page.references.len(), 3);
    // It was named for Anna; others are not told of it.
    assert_eq!(node.get_as("ben", &path).await.head.status, 404);
}
