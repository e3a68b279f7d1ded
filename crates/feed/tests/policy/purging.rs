//! What is forgotten.

use wakeline_feed::{fact::Reference, policy::purge::Purge, store::Store};
use wakeline_testkit::local_bus;

use crate::{
    case_facts::{CaseFacts, made, policies, save, specification},
    database::Database,
};

const POLICY: &str = "purge { (c: Company) { x: Company.Deleted [x->company: Company = c] } }";

fn rules() -> Purge {
    policies(POLICY).purge
}

async fn stored(cases: &CaseFacts, store: &dyn Store, names: &[&'static str]) -> Vec<&'static str> {
    let found = store.find(cases.references(names)).await.unwrap();
    let found = names.iter().zip(found).filter(|(_, at)| at.is_some());
    found.map(|(name, _)| *name).collect()
}

async fn delete(store: &dyn Store, company: Reference) -> Vec<(Reference, i64)> {
    save(
        store,
        vec![made("Company.Deleted", &[("company", company)], "{}")],
    )
    .await
}

const OF_ACME: [&str; 8] = [
    "alice", "acme", "office", "branch", "closed", "admin", "manager", "revoked",
];

pub(crate) async fn what_a_condition_says_is_forgotten_when_it_comes(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let new = delete(&*store, cases.reference("acme")).await;
    // Offices, closure, administrators, revocation and manager.
    assert_eq!(rules().saved(&*store, &local_bus(), &new).await.unwrap(), 7);
    assert_eq!(stored(&cases, &*store, &OF_ACME).await, ["alice", "acme"]);
    assert_eq!(
        stored(&cases, &*store, &["bob", "carol", "post"]).await,
        ["bob", "carol", "post"]
    );
    assert!(store.find(vec![new[0].0.clone()]).await.unwrap()[0].is_some());
    assert_eq!(rules().saved(&*store, &local_bus(), &new).await.unwrap(), 0);
}

pub(crate) async fn what_is_forgotten_can_come_again(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let new = delete(&*store, cases.reference("acme")).await;
    rules().saved(&*store, &local_bus(), &new).await.unwrap();
    let again = save(
        &*store,
        vec![cases.fact("office").clone(), cases.fact("manager").clone()],
    )
    .await;
    assert_eq!(again.len(), 2);
    assert_eq!(
        stored(&cases, &*store, &["office", "manager"]).await,
        ["office", "manager"]
    );
}

pub(crate) async fn a_condition_that_is_newer_than_the_facts_is_caught_up(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    assert_eq!(rules().all(&*store, &local_bus()).await.unwrap(), 0);
    delete(&*store, cases.reference("acme")).await;
    assert_eq!(rules().all(&*store, &local_bus()).await.unwrap(), 7);
    assert_eq!(stored(&cases, &*store, &OF_ACME).await, ["alice", "acme"]);
    assert_eq!(rules().all(&*store, &local_bus()).await.unwrap(), 0);
}

pub(crate) async fn another_root_is_left_alone(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let new = delete(&*store, cases.reference("other")).await;
    assert_eq!(rules().saved(&*store, &local_bus(), &new).await.unwrap(), 0);
    assert_eq!(stored(&cases, &*store, &OF_ACME).await, OF_ACME);
}

pub(crate) async fn what_is_saved_onto_the_forgotten_is_forgotten(database: Database) {
    let cases = CaseFacts::read();
    let store = database.store();
    cases.save(&*store, &[]).await;
    let found = store
        .find(cases.references(&["office", "branch"]))
        .await
        .unwrap();
    let found: Vec<i64> = found.into_iter().flatten().collect();
    assert_eq!(
        store
            .purge_orphans(found)
            .commit(&local_bus())
            .await
            .unwrap(),
        2
    );
    assert_eq!(
        stored(&cases, &*store, &["manager", "closed", "admin"]).await,
        ["admin"]
    );
}

#[test]
fn what_a_specification_lacks_is_said_as_the_real_library_does() {
    let cases = CaseFacts::read();
    let rules = policies(cases.cases["purge"].as_str().unwrap()).purge;
    for case in cases.cases["compliance"].as_array().unwrap() {
        let wanted = specification(case["specification"].as_str().unwrap());
        let missing = case["missing"].as_array().unwrap().iter();
        let missing: Vec<&str> = missing.map(|text| text.as_str().unwrap()).collect();
        match rules.check(&wanted) {
            Ok(()) => assert!(missing.is_empty(), "{case}"),
            Err(unfit) => assert_eq!(unfit.to_string(), missing.join("\n"), "{case}"),
        }
    }
}
