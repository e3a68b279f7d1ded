//! Reading at once under distribution rules.

use wakeline_feed::fact::Fact;

use crate::{
    client::{Answer, request},
    database::Database,
    facts::{POSTS, comment, fact, post, posts, request_text, site},
    node::{Node, USER},
    rules::{member, ruled, ruled_by, user},
};

async fn read(node: &Node, who: &str, text: &str, given: &[&Fact]) -> Answer {
    let headers = [
        ("Content-Type", "text/plain"),
        ("Accept", "application/json"),
        (USER, who),
    ];
    let text = request_text(text, given);
    request(node.address, "POST /jinaga/read", &headers, &text).await
}

async fn load(node: &Node, who: &str, fact: &Fact) -> Answer {
    load_all(node, who, &[fact]).await
}

async fn load_all(node: &Node, who: &str, facts: &[&Fact]) -> Answer {
    let references = facts.iter().map(|fact| {
        serde_json::json!({
            "type": &*fact.reference.kind,
            "hash": fact.reference.hash.to_string(),
        })
    });
    let references: Vec<_> = references.collect();
    let body = serde_json::json!({ "references": references }).to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        (USER, who),
    ];
    request(node.address, "POST /jinaga/load", &headers, &body).await
}

pub(crate) async fn what_may_not_be_loaded_is_not_read_by_its_hash(database: Database) {
    let node = ruled(&database).await;
    let home = site("home");
    let post = posts(&home, "old", 1).remove(0);
    node.save(&[home.clone(), post.clone()]).await;
    let anna = user(&node, "anna").await;
    let bare = [
        ("(p: Post) { } => p", &post),
        ("(p: Post) { } => { h = #p }", &post),
        ("(p: Post) { s: Site [s = p->site: Site] } => s", &post),
        ("(s: Site) { } => s", &home),
    ];
    for (text, fact) in bare {
        assert_eq!(load(&node, "anna", fact).await.head.status, 403);
        let answer = read(&node, "anna", text, &[fact]).await;
        assert_eq!(answer.head.status, 403, "{text}: {answer:?}");
    }
    node.add(&member(&home, &anna)).await;
    for (text, fact) in bare {
        assert_eq!(load(&node, "anna", fact).await.head.status, 200);
        let answer = read(&node, "anna", text, &[fact]).await;
        assert_eq!(answer.head.status, 200, "{text}: {answer:?}");
        assert_eq!(answer.json().as_array().unwrap().len(), 1, "{text}");
    }
}

/// Its givens are hers to see, or nobody's: what is found from them is not.
pub(crate) async fn what_no_rule_would_deliver_is_not_read(database: Database) {
    let node = ruled(&database).await;
    let home = site("home");
    let post = posts(&home, "old", 1).remove(0);
    node.save(&[home.clone(), post.clone()]).await;
    let anna = user(&node, "anna").await;
    let text = "(s: Site) { p: Post [p->site: Site = s] } => { name = p.name }";
    for who in ["anna", ""] {
        let answer = read(&node, who, text, &[&home]).await;
        assert_eq!(answer.head.status, 403, "{who}: {answer:?}");
        assert!(!answer.body.contains("old"), "{answer:?}");
    }
    node.add(&member(&home, &anna)).await;
    let answer = read(&node, "anna", text, &[&home]).await;
    assert_eq!(answer.json(), serde_json::json!([{ "name": "old 0" }]));
    // No rule is for comments at all.
    let comments = "(p: Post) { c: Comment [c->post: Post = p] } => { name = c.name }";
    let answer = read(&node, "anna", comments, &[&post]).await;
    assert_eq!(answer.head.status, 403, "{answer:?}");
}

pub(crate) async fn a_given_that_has_nothing_yet_is_read_from(database: Database) {
    let node = ruled(&database).await;
    let home = site("home");
    node.save(std::slice::from_ref(&home)).await;
    let anna = user(&node, "anna").await;
    node.add(&member(&home, &anna)).await;
    let answer = read(&node, "anna", POSTS, &[&home]).await;
    assert_eq!(answer.head.status, 200, "{answer:?}");
    assert_eq!(answer.json(), serde_json::json!([]));
}

/// A client asks for all facts of a page at once, some time after the page was sent, and goes on
/// behind it whatever the answer is: a fact that is hidden by then must not take the others along.
pub(crate) async fn what_is_hidden_meanwhile_is_left_out_of_a_load(database: Database) {
    let rules = "authorization { any Site any Post any Comment any Delete }
        distribution { share (s: Site) { p: Post [p->site: Site = s
            !E { d: Delete [d->post: Post = p] }] c: Comment [c->post: Post = p] } with everyone }";
    let node = ruled_by(&database, rules).await;
    let home = site("home");
    let [kept, gone] = ["kept", "gone"].map(|name| post(&home, name));
    let (about, hidden) = (comment(&kept, "about"), comment(&gone, "hidden"));
    let graph = [home, kept.clone(), gone.clone()];
    node.save(&[&graph[..], &[about.clone(), hidden.clone()]].concat())
        .await;
    let loaded = async || {
        let answer = load_all(&node, "anna", &[&kept, &about, &gone, &hidden]).await;
        assert_eq!(answer.head.status, 200, "{answer:?}");
        let facts = answer.json()["facts"].as_array().unwrap().clone();
        let mut names: Vec<String> = facts
            .iter()
            .map(|fact| fact["fields"]["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(loaded().await, ["about", "gone", "hidden", "home", "kept"]);
    node.add(&fact("Delete", "delete", &[("post", &gone)]))
        .await;
    // That it is deleted is shared with its post; what was said about it is not any more.
    assert_eq!(loaded().await, ["about", "gone", "home", "kept"]);
    assert_eq!(load(&node, "anna", &hidden).await.head.status, 403);
}
