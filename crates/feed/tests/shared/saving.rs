use wakeline_feed::{
    fact::{Envelope, Fact},
    store::{SaveOutcome, Seq, Store},
};
use wakeline_testkit::CommitAlone;

/// Saves facts in this order; returns the seq of each.
pub(crate) async fn save(store: &dyn Store, facts: &[Fact]) -> Vec<Seq> {
    let envelopes = facts.iter().cloned().map(Envelope::unsigned);
    let saved = store.save(envelopes.collect()).done().await;
    assert!(matches!(saved, SaveOutcome::Stored { .. }), "{saved:?}");
    let references = facts.iter().map(|fact| fact.reference.clone());
    let seqs = store.find(references.collect()).await.unwrap();
    seqs.into_iter().map(|seq| seq.unwrap()).collect()
}
