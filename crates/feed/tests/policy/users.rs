//! Users as facts.

use wakeline_feed::{
    fact::Envelope,
    login::{USER, Users},
    signature::Verifier,
    store::Principal,
};
use wakeline_testkit::local_bus;

use crate::case_facts::{CaseStore, made};

fn principal(id: &str) -> Principal {
    Principal {
        provider: "test".to_owned(),
        id: id.to_owned(),
    }
}

pub(crate) async fn a_user_has_one_key_on_all_nodes(CaseStore { database, .. }: CaseStore) {
    let nodes = [database.store().await, database.store().await];
    let nodes = nodes.map(|store| Users::new(store, local_bus()));
    let anna = principal("anna");
    let (one, other) = tokio::join!(nodes[0].of(&anna), nodes[1].of(&anna));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.fact, other.fact);
    let again = nodes[0].of(&anna).await.unwrap();
    assert_eq!(again.fact, one.fact);
    let signed = made("Signed", &[("by", one.fact.reference.clone())]);
    let signature = other.signer.sign(&signed).unwrap();
    assert_eq!(signature.key, one.key.public);
    let sent = [Envelope {
        fact: signed,
        signatures: vec![signature],
    }];
    assert!(Verifier::default().verify(&sent).is_ok());
}

pub(crate) async fn a_user_is_a_stored_fact(CaseStore { store, .. }: CaseStore) {
    let users = Users::new(store.clone(), local_bus());
    let user = users.of(&principal("anna")).await.unwrap();
    assert_eq!(&*user.fact.reference.kind, USER);
    let found = store.find(vec![user.fact.reference.clone()]).await.unwrap();
    assert!(found[0].is_some());
    let answer: serde_json::Value =
        serde_json::from_str(&user.login_answer("Some \"Body\"")).unwrap();
    assert_eq!(answer["userFact"]["fields"]["publicKey"], &*user.key.public);
    let hash = user.fact.reference.hash.to_string();
    assert_eq!(answer["userFact"]["hash"], hash);
    assert_eq!(answer["profile"]["displayName"], "Some \"Body\"");
}
