//! Whether facts may be saved.

use serde_json::json;
use wakeline_feed::{
    fact::{Envelope, Predecessors, Signature},
    policy::authorization::{Rejection, Verdict},
};

use crate::{
    build::build,
    case_facts::{CaseStore, fact, made, policies},
};

pub(crate) async fn verdicts_are_those_of_the_real_library(
    CaseStore { cases, store, .. }: CaseStore,
) {
    for case in cases.cases["authorization"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let rules = policies(case["policy"].as_str().unwrap()).authorization;
        let sent = case["sent"].as_array().unwrap().iter();
        let envelopes: Vec<Envelope> = sent
            .map(|sent| Envelope {
                fact: fact(&sent["fact"]),
                signatures: keys(sent).map(signature).collect(),
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
                            for_caller: keys(one).any(|key| Some(key) == caller.as_deref()),
                        },
                    })
                    .collect();
                assert_eq!(ours, theirs, "{name}");
            }
        }
    }
}

fn keys(of: &serde_json::Value) -> impl Iterator<Item = &str> {
    let keys = of["keys"].as_array().unwrap().iter();
    keys.map(|key| key.as_str().unwrap())
}

fn signature(key: &str) -> Signature {
    Signature {
        key: key.into(),
        signature: "".into(),
    }
}

pub(crate) async fn an_unknown_predecessor_is_named(CaseStore { cases, store, .. }: CaseStore) {
    let unknown = cases.reference("unknown");
    let office = made("Office", &[("company", unknown.clone())]);
    let rules = policies("authorization { any Office }").authorization;
    let sent = [Envelope::unsigned(office)];
    let refused = rules.authorize(&*store, &sent, None).await.unwrap();
    assert_eq!(refused, Err(Rejection::Missing(unknown)));
}

pub(crate) async fn an_empty_save_is_accepted(CaseStore { store, .. }: CaseStore) {
    let rules = policies("authorization { no Site }").authorization;
    let verdicts = rules.authorize(&*store, &[], None).await.unwrap();
    assert_eq!(verdicts, Ok(Vec::new()));
}

/// With a statement for each it would take minutes.
pub(crate) async fn many_facts_need_few_statements(CaseStore { cases, store, .. }: CaseStore) {
    let rules = policies(
        "authorization { (o: Office) { a: Administrator [a->company: Company = o->company: Company]
            u: Jinaga.User [u = a->user: Jinaga.User] } => u }",
    );
    let acme = Predecessors::One(cases.reference("acme"));
    let office = |number| {
        build(
            "Office",
            json!({ "n": number }),
            vec![("company".into(), acme.clone())],
        )
    };
    let offices: Vec<Envelope> = (0..20_000).map(office).map(Envelope::unsigned).collect();
    let authorize = async |key| {
        let verdicts = rules.authorization.authorize(&*store, &offices, Some(key));
        verdicts.await.unwrap()
    };
    let accepted = Verdict::Accepted { for_caller: true };
    assert_eq!(authorize("key of bob").await, Ok(vec![accepted; 20_000]));
    let refused = authorize("key of carol").await.unwrap_err();
    assert_eq!(refused.to_string(), "Rejected 20000 facts of type Office.");
}
