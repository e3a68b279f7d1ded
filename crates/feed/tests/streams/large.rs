//! Large requests, through the door.

use crate::{
    blog::{fact, posts, site},
    database::Database,
    node::Node,
};

const POSTS: usize = 90_000;
const DEEP: usize = 10_000;

pub(crate) async fn a_large_graph_with_a_deep_chain_is_loaded(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let mut facts = vec![home.clone()];
    facts.extend(posts(&home, "post", POSTS));
    let mut last = fact("Version", "first", &[("of", &home)]);
    facts.push(last.clone());
    for number in 1..DEEP {
        last = fact("Version", number, &[("prior", &last)]);
        facts.push(last.clone());
    }
    node.save(&facts).await;
    let json = node.load_as("", &[&last]).await.json();
    let loaded = json["facts"].as_array().unwrap();
    // Predecessors first, from the site to the end of the chain.
    assert_eq!(loaded.len(), DEEP + 1);
    let hash = |at: usize| loaded[at]["hash"].as_str().unwrap();
    assert_eq!(hash(0), home.reference.hash.to_string());
    assert_eq!(hash(DEEP), last.reference.hash.to_string());
}
