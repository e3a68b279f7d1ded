//! Users as facts.

use wakeline_feed::{
    fact::Envelope,
    login::{USER, Users},
    signature::Verifier,
    store::Principal,
};
use wakeline_testkit::local_bus;

use crate::{case_facts::made, database::Database};

fn principal(id: &str) -> Principal {
    Principal {
        provider: "test".to_owned(),
        id: id.to_owned(),
    }
}

pub(crate) async fn a_user_has_one_key_on_all_nodes(database: Database) {
    let nodes = [
        Users::new(database.store(), local_bus()),
        Users::new(database.store(), local_bus()),
    ];
    let somebody = principal("somebody");
    let (one, other) = tokio::join!(nodes[0].of(&somebody), nodes[1].of(&somebody));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.fact, other.fact);
    let again = nodes[0].of(&somebody).await.unwrap();
    assert_eq!(again.fact, one.fact);
    let signed = made("Thing", &[("by", one.fact.reference.clone())], "{}");
    let signature = other.signer.sign(&signed).unwrap();
    assert_eq!(signature.key, one.key.public);
    let sent = [Envelope {
        fact: signed,
        signatures: vec![signature],
    }];
    assert!(Verifier::default().verify(&sent).is_ok());
}

pub(crate) async fn a_user_is_a_stored_fact(database: Database) {
    let store = database.store();
    let user = Users::new(store.clone(), local_bus())
        .of(&principal("somebody"))
        .await
        .unwrap();
    assert_eq!(&*user.fact.reference.kind, USER);
    let found = store.find(vec![user.fact.reference.clone()]).await.unwrap();
    assert!(found[0].is_some());
    let answer: serde_json::Value =
        serde_json::from_str(&user.login_answer("Some \"Body\"")).unwrap();
    assert_eq!(answer["userFact"]["fields"]["publicKey"], &*user.key.public);
    assert_eq!(
        answer["userFact"]["hash"],
        user.fact.reference.hash.to_string()
    );
    assert_eq!(answer["profile"]["displayName"], "Some \"Body\"");
}
