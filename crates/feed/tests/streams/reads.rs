//! Reading at once under distribution rules.

use wakeline_feed::fact::Fact;

use crate::{
    client::{Answer, request},
    database::Database,
    facts::{POSTS, asked, posts, site},
    node::{Node, USER},
    rules::{member, ruled, user},
};

async fn read(node: &Node, who: &str, text: &str, given: &[&Fact]) -> Answer {
    let headers = [
        ("Content-Type", "text/plain"),
        ("Accept", "application/json"),
        (USER, who),
    ];
    let text = asked(text, given);
    request(node.address, "POST /jinaga/read", &headers, &text).await
}

async fn load(node: &Node, who: &str, fact: &Fact) -> Answer {
    let reference = serde_json::json!({
        "type": &*fact.reference.kind,
        "hash": fact.reference.hash.to_string(),
    });
    let body = serde_json::json!({ "references": [reference] }).to_string();
    let headers = [("Content-Type", "application/json"), (USER, who)];
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
