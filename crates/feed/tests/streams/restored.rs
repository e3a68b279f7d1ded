//! Successors of restored facts.

use std::collections::BTreeSet;

use wakeline_feed::fact::{Fact, Reference};

use crate::{
    blog::{KEPT_COMMENTS, comment, fact, post, references, request_text, site, sorted},
    client::Stream,
    database::Database,
    node::{Node, TEXT},
    rules::{member, ruled_by, user},
    stream_fixture::received,
};

fn delete(post: &Fact, name: &str) -> Fact {
    fact("Delete", name, &[("post", post)])
}

fn restore(delete: &Fact) -> Fact {
    fact("Restore", "restore", &[("delete", delete)])
}

/// The facts that a client gets which follows all feeds, each until its next SYNC.
async fn follow(streams: &mut [Stream]) -> BTreeSet<Reference> {
    let mut all = BTreeSet::new();
    for stream in streams {
        all.extend(received(&stream.until_sync().await));
    }
    all
}

async fn open(node: &Node, user: &str, given: &Fact) -> Vec<Stream> {
    let mut streams = Vec::new();
    for path in node.declare_all_as(user, KEPT_COMMENTS, &[given]).await {
        streams.push(node.stream_as(user, &path).await);
    }
    streams
}

pub(crate) async fn successors_of_a_restored_fact_come_live(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let entry = post(&home, "entry");
    let (about, gone) = (comment(&entry, "about"), delete(&entry, "gone"));
    node.save(&[home.clone(), entry.clone(), about.clone(), gone.clone()])
        .await;
    let mut streams = open(&node, "", &home).await;
    let first = follow(&mut streams).await;
    assert!(!first.contains(&about.reference), "{first:?}");
    let back = restore(&gone);
    node.add(&back).await;
    let mut last = streams.pop().unwrap();
    let frames = last.until_sync().await;
    let tuple = [entry, gone, back, about];
    assert_eq!(sorted(received(&frames)), sorted(references(&tuple)));
    // New comments come as well.
    let new = comment(&tuple[0], "new");
    node.add(&new).await;
    assert!(received(&last.until_sync().await).contains(&new.reference));
}

pub(crate) async fn successors_of_a_fact_deleted_again_do_not_come(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let entry = post(&home, "entry");
    let gone = delete(&entry, "gone");
    let again = delete(&entry, "again");
    node.save(&[home.clone(), entry.clone(), gone.clone(), restore(&gone)])
        .await;
    let path = node.declare(KEPT_COMMENTS, &[&home]).await;
    node.add(&again).await;
    let about = comment(&entry, "about");
    node.add(&about).await;
    assert_eq!(node.get(&path, &[]).await.page().references, []);
    node.add(&restore(&again)).await;
    let page = node.get(&path, &[]).await.page();
    assert!(page.references.contains(&about.reference), "{page:?}");
}

const AUTHORIZATION: &str = "authorization { any Site any Post any Comment any Delete any Restore \
                             any Member any Jinaga.User }";
const MEMBERS: &str = "(s: Site) { m: Member [m->site: Site = s]
    u: Jinaga.User [u = m->user: Jinaga.User] } => u";

/// A rule that shares a specification shares the feeds that are added to upstream's.
pub(crate) async fn a_rule_shares_the_successors_of_a_restored_fact(database: Database) {
    let rules = format!("{AUTHORIZATION} distribution {{ share {KEPT_COMMENTS} with {MEMBERS} }}");
    let node = ruled_by(&database, &rules).await;
    let home = site("home");
    let entry = post(&home, "entry");
    let (about, gone) = (comment(&entry, "about"), delete(&entry, "gone"));
    node.save(&[home.clone(), entry.clone(), about.clone(), gone.clone()])
        .await;
    let anna = user(&node, "anna").await;
    let load = async |node: &Node, user| node.load_graph_as(user, &[&about]).await.head.status;
    // The user is no member yet: the feeds have names for this user, and are denied.
    assert_eq!(open(&node, "anna", &home).await.len(), 4);
    let mut last = open(&node, "anna", &home).await.pop().unwrap();
    assert!(last.next().await.unwrap().is_denied());
    node.add(&member(&home, &anna)).await;
    let mut streams = open(&node, "anna", &home).await;
    assert_eq!(streams.len(), 4);
    assert!(!follow(&mut streams).await.contains(&about.reference));
    assert_eq!(load(&node, "anna").await, 403);
    node.add(&restore(&gone)).await;
    for mut stream in [last, streams.pop().unwrap()] {
        let mut frames = Vec::new();
        while received(&frames).is_empty() {
            frames.extend(stream.until_sync().await);
        }
        assert!(received(&frames).contains(&about.reference));
    }
    assert_eq!(load(&node, "anna").await, 200);
    assert_eq!(load(&node, "ben").await, 403);
}

/// Rules that share upstream's feeds one by one do not share the added one: it is left out, and the
/// others are served.
pub(crate) async fn rules_for_upstreams_feeds_are_enough(database: Database) {
    let rules = format!(
        "{AUTHORIZATION} distribution {{
            share (s: Site) {{ p: Post [p->site: Site = s] d: Delete [d->post: Post = p]
                r: Restore [r->delete: Delete = d] }} with everyone
            share (s: Site) {{ p: Post [p->site: Site = s] d: Delete [d->post: Post = p
                !E {{ r: Restore [r->delete: Delete = d] }}] }} with everyone
            share (s: Site) {{ p: Post [p->site: Site = s
                !E {{ d: Delete [d->post: Post = p] }}] c: Comment [c->post: Post = p] }} with everyone
        }}"
    );
    let node = ruled_by(&database, &rules).await;
    let home = site("home");
    let entry = post(&home, "entry");
    let about = comment(&entry, "about");
    node.save(&[home.clone(), entry, about.clone()]).await;
    let text = request_text(KEPT_COMMENTS, &[&home]);
    let answer = node.post("anna", "/jinaga/feeds", TEXT, &text).await;
    let json = answer.json();
    let decisions = json["decisions"].as_array().unwrap().iter();
    let decisions: Vec<_> = decisions.map(|one| &one["decision"]).collect();
    assert_eq!(decisions, ["authorized"; 3], "{json}");
    let mut streams = open(&node, "anna", &home).await;
    assert_eq!(streams.len(), 3);
    assert!(follow(&mut streams).await.contains(&about.reference));
}
