//! Facts that are sent in any order.

use wakeline_feed::store::Facts;

use crate::{
    blog::{comment, post, site},
    database::Database,
    node::Node,
};

pub(crate) async fn successors_may_be_sent_before_their_predecessors(database: Database) {
    let node = Node::new(&database).await;
    let home = site("home");
    let (one, two) = (post(&home, "one"), post(&home, "two"));
    let (first, second) = (comment(&one, "first"), comment(&two, "second"));
    // One of them twice, and a predecessor between two that need it.
    node.add_all(&[&second, &first, &one, &first, &home, &two])
        .await;
    let all = [&home, &one, &two, &first, &second];
    let references = all.map(|fact| fact.reference.clone());
    let seqs = node.store.find(references.to_vec()).await.unwrap();
    let seqs: Vec<i64> = seqs.into_iter().map(|seq| seq.expect("stored")).collect();
    assert!(seqs[0] < seqs[1] && seqs[0] < seqs[2], "{seqs:?}");
    assert!(seqs[1] < seqs[3] && seqs[2] < seqs[4], "{seqs:?}");
    let stored = node.store.log(0, 10).await.unwrap().entries;
    assert_eq!(stored.len(), all.len(), "each once");
}
