//! Whether facts may be saved.

use wakeline_feed::{
    fact::{Envelope, Signature},
    policy::authorization::{Rejection, Verdict},
};

use crate::{
    case_facts::{CaseFacts, fact, made, policies},
    database::Database,
};

pub(crate) async fn verdicts_are_those_of_the_real_library(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    for case in cases.cases["authorization"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let rules = policies(case["policy"].as_str().unwrap()).authorization;
        let sent = case["sent"].as_array().unwrap().iter();
        let envelopes: Vec<Envelope> = sent
            .map(|sent| Envelope {
                fact: fact(&sent["fact"]),
                signatures: sent["keys"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(signature)
                    .collect(),
            })
            .collect();
        let caller = case["user"].as_str().map(|user| format!("key of {user}"));
        let ours = rules
            .authorize(&*store, &envelopes, caller.as_deref())
            .await
            .unwrap();
        let expected = &case["expected"];
        match ours {
            Err(refused) => assert_eq!(refused.to_string(), expected["error"], "{name}"),
            Ok(ours) => {
                let theirs = expected["verdicts"]
                    .as_array()
                    .unwrap_or_else(|| panic!("{name}"));
                let theirs: Vec<Verdict> = theirs
                    .iter()
                    .map(|one| match one["verdict"].as_str() {
                        Some("Existing") => Verdict::Known,
                        _ => Verdict::Accepted {
                            for_caller: one["keys"]
                                .as_array()
                                .unwrap()
                                .iter()
                                .any(|key| key.as_str() == caller.as_deref()),
                        },
                    })
                    .collect();
                assert_eq!(ours, theirs, "{name}");
            }
        }
    }
}

fn signature(key: &serde_json::Value) -> Signature {
    Signature {
        key: key.as_str().unwrap().into(),
        signature: "".into(),
    }
}

pub(crate) async fn a_predecessor_that_nobody_knows_is_named(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let unknown = cases.reference("unknown");
    let office = made("Office", &[("company", unknown.clone())], "{}");
    let rules = policies("authorization { any Office }").authorization;
    let sent = [Envelope {
        fact: office,
        signatures: Vec::new(),
    }];
    let refused = rules.authorize(&*store, &sent, None).await.unwrap();
    assert_eq!(refused, Err(Rejection::Missing(unknown)));
}

pub(crate) async fn nothing_is_nothing(database: Database) {
    let store = database.store();
    let rules = policies("authorization { no Site }").authorization;
    assert_eq!(
        rules.authorize(&*store, &[], None).await.unwrap(),
        Ok(Vec::new())
    );
}

/// With a question for each it would take minutes.
pub(crate) async fn many_facts_are_few_questions(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let rules = policies(
        "authorization { (o: Office) { a: Administrator [a->company: Company = o->company: Company]
            u: Jinaga.User [u = a->user: Jinaga.User] } => u }",
    );
    let acme = cases.reference("acme");
    let offices = (0..20_000).map(|number| Envelope {
        fact: made(
            "Office",
            &[("company", acme.clone())],
            &format!("{{\"n\":{number}}}"),
        ),
        signatures: Vec::new(),
    });
    let offices: Vec<Envelope> = offices.collect();
    let verdicts = rules
        .authorization
        .authorize(&*store, &offices, Some("key of bob"))
        .await;
    let accepted = Verdict::Accepted { for_caller: true };
    assert_eq!(verdicts.unwrap().unwrap(), vec![accepted; 20_000]);
    let refused = rules
        .authorization
        .authorize(&*store, &offices, Some("key of carol"))
        .await;
    let text = refused.unwrap().unwrap_err().to_string();
    assert_eq!(text, "Rejected 20000 facts of type Office.");
}
