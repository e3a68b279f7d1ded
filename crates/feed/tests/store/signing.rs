//! Signatures and public keys.

use wakeline_feed::fact::Envelope;
use wakeline_testkit::local_bus;

use crate::{
    database::Database,
    ground::{Ground, fact, signed},
};

async fn keys(ground: &Ground, envelope: &Envelope) -> Vec<String> {
    let stored = ground.stored(&envelope.fact).await;
    let mut keys = Vec::new();
    for one in stored.signatures {
        assert_eq!(*one.signature, format!("by {}", one.key));
        keys.push(one.key.to_string());
    }
    keys.sort();
    keys
}

pub(crate) async fn a_signature_is_kept(database: Database) {
    let ground = Ground::new(database).await;
    let post = signed(&fact("Post", "post", &[]), &["anna", "ben"]);
    let bare = signed(&fact("Post", "bare", &[]), &[]);
    let sent = [post.clone(), bare.clone()];
    ground
        .store
        .save(sent.into())
        .commit(&local_bus())
        .await
        .unwrap();
    assert_eq!(keys(&ground, &post).await, ["anna", "ben"]);
    assert!(keys(&ground, &bare).await.is_empty());
}

pub(crate) async fn a_known_fact_gets_new_signatures(database: Database) {
    let ground = Ground::new(database).await;
    let post = fact("Post", "post", &[]);
    for (signers, expected) in [
        (&[][..], &[][..]),
        (&["anna"], &["anna"]),
        (&["ben", "anna"], &["anna", "ben"]),
        (&["anna"], &["anna", "ben"]),
    ] {
        let envelope = signed(&post, signers);
        ground
            .store
            .save([envelope.clone()].into())
            .commit(&local_bus())
            .await
            .unwrap();
        assert_eq!(keys(&ground, &envelope).await, expected);
    }
    // Twice in one save.
    let sent = [signed(&post, &["carl"]), signed(&post, &["carl", "dora"])];
    ground
        .store
        .save(sent.clone().into())
        .commit(&local_bus())
        .await
        .unwrap();
    let all = ["anna", "ben", "carl", "dora"];
    assert_eq!(keys(&ground, &sent[0]).await, all);
}

pub(crate) async fn keys_are_kept_once(database: Database) {
    let ground = Ground::new(database).await;
    for name in ["a", "b", "c"] {
        let sent = signed(&fact("Post", name, &[]), &["anna"]);
        ground
            .store
            .save([sent].into())
            .commit(&local_bus())
            .await
            .unwrap();
    }
    assert_eq!(ground.database.count("feed_public_key").await, 1);
    assert_eq!(ground.database.count("feed_signature").await, 3);
}
