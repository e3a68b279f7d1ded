//! Signatures and public keys.

use wakeline_feed::fact::Envelope;
use wakeline_testkit::CommitAlone;

use crate::{
    facts::fact,
    fixture::{Fixture, signed},
};

async fn keys(fixture: &Fixture, envelope: &Envelope) -> Vec<String> {
    let stored = fixture.stored(&envelope.fact).await;
    let mut keys = Vec::new();
    for one in stored.signatures {
        assert_eq!(*one.signature, format!("by {}", one.key));
        keys.push(one.key.to_string());
    }
    keys.sort();
    keys
}

pub(crate) async fn a_signature_is_stored(fixture: Fixture) {
    let post = signed(&fact("Post", "post", &[]), &["anna", "ben"]);
    let bare = signed(&fact("Post", "bare", &[]), &[]);
    let sent = [post.clone(), bare.clone()];
    fixture.store.save(sent.into()).done().await;
    assert_eq!(keys(&fixture, &post).await, ["anna", "ben"]);
    assert!(keys(&fixture, &bare).await.is_empty());
}

pub(crate) async fn a_stored_fact_gets_new_signatures(fixture: Fixture) {
    let post = fact("Post", "post", &[]);
    for (signers, expected) in [
        (&[][..], &[][..]),
        (&["anna"], &["anna"]),
        (&["ben", "anna"], &["anna", "ben"]),
        (&["anna"], &["anna", "ben"]),
    ] {
        let envelope = signed(&post, signers);
        fixture.store.save([envelope.clone()].into()).done().await;
        assert_eq!(keys(&fixture, &envelope).await, expected);
    }
    // Twice in one save.
    let sent = [signed(&post, &["carl"]), signed(&post, &["carl", "dora"])];
    fixture.store.save(sent.clone().into()).done().await;
    let all = ["anna", "ben", "carl", "dora"];
    assert_eq!(keys(&fixture, &sent[0]).await, all);
}

pub(crate) async fn keys_are_stored_once(fixture: Fixture) {
    for name in ["a", "b", "c"] {
        let sent = signed(&fact("Post", name, &[]), &["anna"]);
        fixture.store.save([sent].into()).done().await;
    }
    assert_eq!(fixture.database.count("feed_public_key").await, 1);
    assert_eq!(fixture.database.count("feed_signature").await, 3);
}
