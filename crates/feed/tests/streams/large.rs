//! Much at once, through the door.

use crate::{
    client::request,
    database::Database,
    facts::{fact, posts, site},
    node::Node,
};

const POSTS: usize = 90_000;
const DEEP: usize = 10_000;

pub(crate) async fn a_large_graph_with_a_deep_chain_comes_back(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let mut facts = vec![home.clone()];
    facts.extend(posts(&home, "post", POSTS));
    let mut last = fact("Version", "first", &[("of", &home)]);
    facts.push(last.clone());
    for number in 1..DEEP {
        last = fact("Version", &number.to_string(), &[("prior", &last)]);
        facts.push(last.clone());
    }
    node.save(&facts).await;
    let body = serde_json::json!({ "references": [{
        "type": "Version",
        "hash": last.reference.hash.to_string(),
    }] });
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
    ];
    let answer = request(
        node.address,
        "POST /jinaga/load",
        &headers,
        &body.to_string(),
    )
    .await;
    let said = answer.json();
    let loaded = said["facts"].as_array().unwrap();
    // Predecessors first, from the site to the end of the chain.
    assert_eq!(loaded.len(), DEEP + 1);
    let hash = |at: usize| loaded[at]["hash"].as_str().unwrap();
    assert_eq!(hash(0), home.reference.hash.to_string());
    assert_eq!(hash(DEEP), last.reference.hash.to_string());
}
