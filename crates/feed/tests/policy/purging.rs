//! Purged facts.

use wakeline_feed::{
    fact::Reference,
    policy::purge::Purge,
    store::{Seq, Store},
};
use wakeline_testkit::{CommitAlone, local_bus};

use crate::{
    case_facts::{CaseFacts, CaseStore, made, policies, specification},
    saving::save,
};

const POLICY: &str = "purge { (c: Company) { x: Company.Deleted [x->company: Company = c] } }";

fn rules() -> Purge {
    policies(POLICY).purge
}

async fn purge_after(store: &dyn Store, new: &[(Reference, Seq)]) -> usize {
    rules().saved(store, &local_bus(), new).await.unwrap()
}

async fn purge_all(store: &dyn Store) -> usize {
    rules().all(store, &local_bus()).await.unwrap()
}

async fn stored(cases: &CaseFacts, store: &dyn Store, names: &[&'static str]) -> Vec<&'static str> {
    let found = store.find(cases.references(names)).await.unwrap();
    let found = names.iter().zip(found).filter(|(_, seq)| seq.is_some());
    found.map(|(name, _)| *name).collect()
}

async fn delete(store: &dyn Store, company: Reference) -> [(Reference, Seq); 1] {
    let deleted = made("Company.Deleted", &[("company", company)]);
    let seq = save(store, std::slice::from_ref(&deleted)).await[0];
    [(deleted.reference, seq)]
}

const OF_ACME: [&str; 8] = [
    "alice", "acme", "office", "branch", "closed", "admin", "manager", "revoked",
];

pub(crate) async fn a_condition_purges_when_its_fact_is_saved(
    CaseStore { cases, store, .. }: CaseStore,
) {
    let new = delete(&*store, cases.reference("acme")).await;
    // Offices, closure, administrators, revocation and manager.
    assert_eq!(purge_after(&*store, &new).await, 7);
    assert_eq!(stored(&cases, &*store, &OF_ACME).await, ["alice", "acme"]);
    let others = ["bob", "carol", "post"];
    assert_eq!(stored(&cases, &*store, &others).await, others);
    assert!(store.find(vec![new[0].0.clone()]).await.unwrap()[0].is_some());
    assert_eq!(purge_after(&*store, &new).await, 0);
}

pub(crate) async fn a_purged_fact_can_be_saved_again(CaseStore { cases, store, .. }: CaseStore) {
    let new = delete(&*store, cases.reference("acme")).await;
    purge_after(&*store, &new).await;
    let names = ["office", "manager"];
    assert!(stored(&cases, &*store, &names).await.is_empty());
    save(&*store, &names.map(|name| cases.fact(name).clone())).await;
    assert_eq!(stored(&cases, &*store, &names).await, names);
}

pub(crate) async fn a_new_condition_purges_older_facts(CaseStore { cases, store, .. }: CaseStore) {
    assert_eq!(purge_all(&*store).await, 0);
    delete(&*store, cases.reference("acme")).await;
    assert_eq!(purge_all(&*store).await, 7);
    assert_eq!(stored(&cases, &*store, &OF_ACME).await, ["alice", "acme"]);
    assert_eq!(purge_all(&*store).await, 0);
}

pub(crate) async fn another_root_is_left_alone(CaseStore { cases, store, .. }: CaseStore) {
    let new = delete(&*store, cases.reference("other")).await;
    assert_eq!(purge_after(&*store, &new).await, 0);
    assert_eq!(stored(&cases, &*store, &OF_ACME).await, OF_ACME);
}

pub(crate) async fn successors_of_purged_facts_are_purged(
    CaseStore { cases, store, .. }: CaseStore,
) {
    let purged = cases.references(&["office", "branch"]);
    let purged = store.find(purged).await.unwrap();
    let purged: Vec<Seq> = purged.into_iter().flatten().collect();
    assert_eq!(store.purge_orphans(purged).done().await, 2);
    let left = stored(&cases, &*store, &["manager", "closed", "admin"]).await;
    assert_eq!(left, ["admin"]);
}

#[test]
fn missing_conditions_are_named_as_the_real_library_does() {
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
