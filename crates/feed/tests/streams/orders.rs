//! Facts that are sent in any order.

use serde_json::json;
use wakeline_feed::fact::Fact;

use crate::{
    client::request,
    database::Database,
    facts::{comment, post, site},
    node::Node,
};

fn as_json(fact: &Fact) -> serde_json::Value {
    let roles = fact.predecessors.iter().map(|(role, predecessors)| {
        let reference = &predecessors.references()[0];
        let hash = reference.hash.to_string();
        (
            role.to_string(),
            json!({ "type": &*reference.kind, "hash": hash }),
        )
    });
    json!({
        "type": &*fact.reference.kind,
        "hash": fact.reference.hash.to_string(),
        "predecessors": roles.collect::<serde_json::Map<_, _>>(),
        "fields": serde_json::from_str::<serde_json::Value>(&fact.fields).unwrap(),
    })
}

pub(crate) async fn successors_may_be_sent_before_their_predecessors(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let (one, two) = (post(&home, "one"), post(&home, "two"));
    let (first, second) = (comment(&one, "first"), comment(&two, "second"));
    // One of them twice, and a predecessor between two that need it.
    let sent = [&second, &first, &one, &first, &home, &two];
    let sent: Vec<_> = sent.into_iter().map(as_json).collect();
    let body = json!({ "facts": sent }).to_string();
    let kind = ("Content-Type", "application/json");
    let answer = request(node.address, "POST /jinaga/save", &[kind], &body).await;
    assert_eq!(answer.head.status, 201, "{answer:?}");
    use wakeline_feed::store::Facts;
    let all = [&home, &one, &two, &first, &second];
    let references = all.map(|fact| fact.reference.clone());
    let at = node.store.find(references.to_vec()).await.unwrap();
    let at: Vec<i64> = at.into_iter().map(|at| at.expect("it is stored")).collect();
    assert!(at[0] < at[1] && at[0] < at[2], "{at:?}");
    assert!(at[1] < at[3] && at[2] < at[4], "{at:?}");
    let stored = node.store.log(0, 10).await.unwrap().entries;
    assert_eq!(stored.len(), all.len(), "each once");
}
