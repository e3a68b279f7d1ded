//! Streams under distribution rules.

use wakeline_feed::{
    fact::{Fact, Hash, Predecessors, Reference},
    policy::Policies,
};
use wakeline_testkit::soon;

use crate::{
    blog::{POSTS, build, fact, post, references},
    client::{EVENTS, Frame, Stream},
    database::Database,
    node::{Blog, Node, settings},
    stream_fixture::received,
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

/// Members until a revocation, and again after its reversal.
const REVOCABLE: &str = "
authorization { any Site any Post any Member any Revoked any Restored any Jinaga.User }
distribution {
    share (s: Site) { p: Post [p->site: Site = s] }
    with (s: Site) {
        m: Member [
            m->site: Site = s
            !E {
                r: Revoked [
                    r->member: Member = m
                    !E { b: Restored [b->revoked: Revoked = r] }
                ]
            }
        ]
        u: Jinaga.User [u = m->user: Jinaga.User]
    } => u
}";

pub(crate) async fn ruled(database: &Database) -> Node {
    ruled_by(database, RULES).await
}

pub(crate) async fn ruled_by(database: &Database, rules: &str) -> Node {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("blog.policy"), rules).unwrap();
    let policies = Policies::read(directory.path()).unwrap();
    Node::ruled(database, settings(), policies).await
}

/// The fact of the user with this name.
pub(crate) async fn user(node: &Node, name: &str) -> Reference {
    let answer = node.get_as(name, "/jinaga/login").await.json();
    Reference {
        kind: "Jinaga.User".into(),
        hash: Hash::read(answer["userFact"]["hash"].as_str().unwrap()).unwrap(),
    }
}

pub(crate) fn member(site: &Fact, user: &Reference) -> Fact {
    made("Member", &[("site", &site.reference), ("user", user)])
}

fn made(kind: &str, predecessors: &[(&str, &Reference)]) -> Fact {
    let predecessors = predecessors
        .iter()
        .map(|(role, one)| ((*role).into(), Predecessors::One((*one).clone())));
    build(kind, serde_json::json!({}), predecessors.collect())
}

async fn denied(stream: &mut Stream) -> Frame {
    let frame = stream.next().await.unwrap();
    assert!(frame.is_denied(), "{frame:?}");
    assert_eq!(frame.json["decision"], "denied");
    assert_eq!(frame.json["code"], "principal-excluded");
    assert!(frame.references.is_empty());
    frame
}

pub(crate) async fn a_denied_feed_goes_live_when_the_user_is_admitted(database: Database) {
    let node = ruled(&database).await;
    let Blog { home, posts, .. } = node.blog(3).await;
    let anna = user(&node, "anna").await;
    let path = node.declare_as("anna", POSTS, &[&home]).await;
    let mut stream = node.stream_as("anna", &path).await;
    denied(&mut stream).await;
    node.add(&member(&home, &anna)).await;
    let frames = stream.until(3).await;
    assert_eq!(received(&frames), references(&posts));
    stream.until_sync().await;
    let new = post(&home, "new");
    node.add(&new).await;
    assert_eq!(received(&stream.until_sync().await), references(&[new]));
}

pub(crate) async fn a_denied_feed_announces_no_new_facts(database: Database) {
    let node = ruled(&database).await;
    let Blog { home, posts, .. } = node.blog(3).await;
    let (anna, ben) = (user(&node, "anna").await, user(&node, "ben").await);
    let path = node.declare_as("anna", POSTS, &[&home]).await;
    let mut stream = node.stream_as("anna", &path).await;
    denied(&mut stream).await;
    let mut all = posts;
    // Posts are saved and another user is admitted: none of it is for this user.
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
    // All posts come in one page, when the user is admitted.
    let with_facts = frames.iter().filter(|frame| !frame.references.is_empty());
    assert_eq!(with_facts.count(), 1, "{frames:?}");
    let before = &frames[..frames.len() - 1];
    assert!(before.iter().all(Frame::is_denied), "{frames:?}");
    assert_eq!(received(&frames), references(&all));
}

pub(crate) async fn a_denied_feed_sends_its_denial_as_an_event(database: Database) {
    let node = ruled(&database).await;
    let home = node.blog(1).await.home;
    user(&node, "anna").await;
    let path = node.declare_as("anna", POSTS, &[&home]).await;
    let headers = [("Accept", EVENTS), ("x-user", "anna")];
    let mut stream = Stream::open(node.address, &path, &headers).await;
    let mut lines = Vec::new();
    for _ in 0..3 {
        lines.push(soon("an event", stream.line()).await.unwrap());
    }
    assert_eq!(lines[..2], ["event: denied", "id: "]);
    let frame = Frame::read(lines[2].strip_prefix("data: ").unwrap()).unwrap();
    assert!(frame.is_denied(), "{frame:?}");
    assert!(frame.references.is_empty(), "{frame:?}");
}

pub(crate) async fn a_denied_page_is_empty(database: Database) {
    let node = ruled(&database).await;
    let home = node.blog(3).await.home;
    let anna = user(&node, "anna").await;
    let path = node.declare_as("anna", POSTS, &[&home]).await;
    let page = node.get_as("anna", &path).await.page();
    assert!(page.references.is_empty());
    node.add(&member(&home, &anna)).await;
    let page = node.get_as("anna", &path).await.page();
    assert_eq!(page.references.len(), 3);
    // The feed's name is for one user; others do not find it.
    assert_eq!(node.get_as("ben", &path).await.head.status, 404);
}

/// A user who is excluded gets a denial instead of the next post, and all posts when admitted
/// again.
pub(crate) async fn a_revoked_feed_is_denied_at_the_next_post(database: Database) {
    let node = ruled_by(&database, REVOCABLE).await;
    let Blog { home, posts, .. } = node.blog(1).await;
    let anna = user(&node, "anna").await;
    let member = member(&home, &anna);
    node.add(&member).await;
    let path = node.declare_as("anna", POSTS, &[&home]).await;
    let mut stream = node.stream_as("anna", &path).await;
    let frames = stream.until_sync().await;
    assert_eq!(received(&frames), references(&posts));
    let revoked = fact("Revoked", "out", &[("member", &member)]);
    node.add(&revoked).await;
    let new = post(&home, "new");
    node.add(&new).await;
    let frame = denied(&mut stream).await;
    assert_eq!(frame.bookmark, frames.last().unwrap().bookmark);
    node.add(&fact("Restored", "in", &[("revoked", &revoked)]))
        .await;
    let frames = stream.until_sync().await;
    let with_facts = frames.iter().filter(|frame| !frame.is_denied());
    let with_facts: Vec<Frame> = with_facts.cloned().collect();
    assert_eq!(received(&with_facts), references(&[posts[0].clone(), new]));
}

/// Rules whose last missing fact does not lead to the user: it is in a condition, or a successor of
/// a given that the feed does not have.
pub(crate) async fn each_fact_that_admits_lets_a_denied_feed_go_live(database: Database) {
    let share = "share (s: Site) { p: Post [p->site: Site = s] } with";
    let of_owner = "u: Jinaga.User [u = s->owner: Jinaga.User";
    let open = "E { o: Open [o->user: Jinaga.User = u] }";
    let closed = "!E { c: Close [c->user: Jinaga.User = u !E { o: Undo [o->close: Close = c] }] }";
    let open_site = "E { o: Open [o->site: Site = s] }";
    let closed_site = "!E { c: Close [c->site: Site = s !E { o: Undo [o->close: Close = c] }] }";
    let member = "m: Member [m->site: Site = s";
    let of_member = "u: Jinaga.User [u = m->user: Jinaga.User]";
    let accepted = "E { a: Accept [a->member: Member = m] }";
    let rules = [
        format!("{share} (s: Site) {{ {member} {accepted}] {of_member} }} => u"),
        format!("{share} (s: Site) {{ {of_owner} {open}] }} => u"),
        format!("{share} (s: Site) {{ {of_owner} {closed}] }} => u"),
        format!("{share} (s: Site [{open_site}]) {{ {of_owner}] }} => u"),
        format!("{share} (s: Site [{closed_site}]) {{ {of_owner}] }} => u"),
        format!(
            "share (s: Site, c: Club) {{ p: Post [p->site: Site = s] }} with (s: Site, c: Club) {{
                {member}]
                j: Join [j->club: Club = c j->user: Jinaga.User = m->user: Jinaga.User]
                {of_member}
            }} => u"
        ),
    ];
    let database = &database;
    for (number, rule) in rules.iter().enumerate() {
        let kinds = "Site Post Member Accept Open Close Undo Club Join Jinaga.User";
        let kinds = kinds.split(' ').map(|kind| format!("any {kind} "));
        let kinds: String = kinds.collect();
        let rules = format!("authorization {{ {kinds} }} distribution {{ {rule} }}");
        let node = ruled_by(database, &rules).await;
        let anna = user(&node, &format!("anna {number}")).await;
        let home = made("Site", &[("owner", &anna)]);
        let (member, club) = (self::member(&home, &anna), made("Club", &[]));
        let of_both = [("site", &home.reference), ("user", &anna)];
        let close = made("Close", &of_both);
        let old = post(&home, "old");
        for known in [&home, &member, &club, &close, &old] {
            node.add(known).await;
        }
        let name = format!("anna {number}");
        let path = node.declare_as(&name, POSTS, &[&home]).await;
        let mut stream = node.stream_as(&name, &path).await;
        denied(&mut stream).await;
        node.add(
            &[
                made("Accept", &[("member", &member.reference)]),
                made("Open", &of_both),
                made("Undo", &[("close", &close.reference)]),
                made("Open", &of_both),
                made("Undo", &[("close", &close.reference)]),
                made("Join", &[("club", &club.reference), ("user", &anna)]),
            ][number],
        )
        .await;
        assert_eq!(
            received(&stream.until(1).await),
            references(&[old]),
            "{rule}"
        );
    }
}
