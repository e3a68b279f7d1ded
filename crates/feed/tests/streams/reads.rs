//! Reading and loading under distribution rules.

use wakeline_feed::fact::Fact;

use crate::{
    blog::{POSTS, comment, fact, post, request_text, site},
    client::Answer,
    database::Database,
    node::{Blog, Node, TEXT},
    rules::{member, ruled, ruled_by, user},
};

async fn read(node: &Node, user: &str, text: &str, given: &[&Fact]) -> Answer {
    let text = request_text(text, given);
    node.post(user, "/jinaga/read", TEXT, &text).await
}

pub(crate) async fn a_fact_that_may_not_be_loaded_is_not_read_by_its_hash(database: Database) {
    let node = ruled(&database).await;
    let Blog { home, posts, .. } = node.blog(1).await;
    let post = &posts[0];
    let anna = user(&node, "anna").await;
    let bare = [
        ("(p: Post) { } => p", post),
        ("(p: Post) { } => { h = #p }", post),
        ("(p: Post) { s: Site [s = p->site: Site] } => s", post),
        ("(s: Site) { } => s", &home),
    ];
    for (text, fact) in bare {
        assert_eq!(node.load_as("anna", &[fact]).await.head.status, 403);
        let answer = read(&node, "anna", text, &[fact]).await;
        assert_eq!(answer.head.status, 403, "{text}: {answer:?}");
    }
    node.add(&member(&home, &anna)).await;
    for (text, fact) in bare {
        assert_eq!(node.load_as("anna", &[fact]).await.head.status, 200);
        let answer = read(&node, "anna", text, &[fact]).await;
        assert_eq!(answer.head.status, 200, "{text}: {answer:?}");
        assert_eq!(answer.json().as_array().unwrap().len(), 1, "{text}");
    }
}

/// Whether the user may load the givens or not.
pub(crate) async fn facts_that_no_rule_delivers_are_not_read(database: Database) {
    let node = ruled(&database).await;
    let Blog { home, posts, .. } = node.blog(1).await;
    let post = &posts[0];
    let anna = user(&node, "anna").await;
    let text = "(s: Site) { p: Post [p->site: Site = s] } => { name = p.name }";
    for user in ["anna", ""] {
        let answer = read(&node, user, text, &[&home]).await;
        assert_eq!(answer.head.status, 403, "{user}: {answer:?}");
        assert!(!answer.body.contains("post 0"), "{answer:?}");
    }
    node.add(&member(&home, &anna)).await;
    let answer = read(&node, "anna", text, &[&home]).await;
    assert_eq!(answer.json(), serde_json::json!([{ "name": "post 0" }]));
    // No rule shares comments.
    let comments = "(p: Post) { c: Comment [c->post: Post = p] } => { name = c.name }";
    let answer = read(&node, "anna", comments, &[post]).await;
    assert_eq!(answer.head.status, 403, "{answer:?}");
}

pub(crate) async fn a_given_without_successors_has_no_results(database: Database) {
    let node = ruled(&database).await;
    let home = node.blog(0).await.home;
    let anna = user(&node, "anna").await;
    node.add(&member(&home, &anna)).await;
    let answer = read(&node, "anna", POSTS, &[&home]).await;
    assert_eq!(answer.head.status, 200, "{answer:?}");
    assert_eq!(answer.json(), serde_json::json!([]));
}

/// A client loads all facts of a page at once, some time after the page was sent, and reads on
/// whatever the answer is: a fact that is hidden by then must not hide the others.
pub(crate) async fn facts_hidden_meanwhile_are_left_out_of_a_load(database: Database) {
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
        let answer = node.load_as("anna", &[&kept, &about, &gone, &hidden]).await;
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
    // The deletion is shared with its post; the comments on the post are not any more.
    assert_eq!(loaded().await, ["about", "gone", "home", "kept"]);
    assert_eq!(node.load_as("anna", &[&hidden]).await.head.status, 403);
}
