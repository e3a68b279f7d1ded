//! The facts that the cases are about, as the script beside the vectors made them.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use wakeline_feed::{
    fact::{Fact, Predecessors, Reference, record::read_facts},
    policy::{
        Policies,
        distribution::{Decision, Distribution},
    },
    policy_file::PolicyFile,
    specification::{Specification, parser},
    store::Store,
};
use wakeline_testkit::DatabaseKind;

use crate::{build::build, database::Database, saving::save};

pub(crate) struct CaseFacts {
    pub(crate) cases: Value,
    facts: HashMap<String, Fact>,
}

/// The facts in a store.
pub(crate) struct CaseStore {
    pub(crate) cases: CaseFacts,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) database: Database,
}

impl CaseStore {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        let (cases, database) = (CaseFacts::read(), Database::open(kind).await);
        let store = database.store().await;
        save(&*store, &cases.stored()).await;
        Self {
            cases,
            store,
            database,
        }
    }
}

/// A case of distribution rules.
pub(crate) struct DistributionCase {
    pub(crate) value: Value,
    pub(crate) name: String,
    pub(crate) rules: Distribution,
    pub(crate) user: Option<Reference>,
    specification: Specification,
    given: Vec<Reference>,
}

impl DistributionCase {
    pub(crate) async fn decide(&self, store: &dyn Store) -> Decision {
        let (wanted, user) = (&self.specification, self.user.as_ref());
        let decision = self.rules.decide(store, wanted, &self.given, user);
        decision.await.unwrap()
    }
}

impl CaseFacts {
    pub(crate) fn read() -> Self {
        let cases: Value = serde_json::from_str(include_str!("../vectors/policies.json")).unwrap();
        let facts = cases["facts"].as_object().unwrap().iter();
        let facts = facts.map(|(name, written)| (name.clone(), fact(written)));
        Self {
            facts: facts.collect(),
            cases,
        }
    }

    pub(crate) fn fact(&self, name: &str) -> &Fact {
        &self.facts[name]
    }

    pub(crate) fn reference(&self, name: &str) -> Reference {
        self.fact(name).reference.clone()
    }

    pub(crate) fn references(&self, names: &[&str]) -> Vec<Reference> {
        names.iter().map(|name| self.reference(name)).collect()
    }

    pub(crate) fn distribution(&self) -> impl Iterator<Item = DistributionCase> {
        let cases = self.cases["distribution"].as_array().unwrap().iter();
        cases.map(|case| {
            let text = |name: &str| case[name].as_str().unwrap();
            let given = case["given"].as_array().unwrap().iter();
            let given = given.map(|name| self.reference(name.as_str().unwrap()));
            DistributionCase {
                name: text("name").to_owned(),
                rules: distribution(text("policy")),
                user: case["user"].as_str().map(|user| self.reference(user)),
                specification: specification(text("specification")),
                given: given.collect(),
                value: case.clone(),
            }
        })
    }

    /// All facts but the one named `unknown`, predecessors first.
    fn stored(&self) -> Vec<Fact> {
        let known = self.facts.iter().filter(|(name, _)| *name != "unknown");
        let mut known: Vec<&Fact> = known.map(|(_, fact)| fact).collect();
        let mut ordered: Vec<Fact> = Vec::new();
        while !known.is_empty() {
            let before = known.len();
            known.retain(|fact| {
                let is_ordered =
                    |one: &Reference| ordered.iter().any(|fact| fact.reference == *one);
                let is_next = fact.references().all(|(_, one)| is_ordered(one));
                if is_next {
                    ordered.push((*fact).clone());
                }
                !is_next
            });
            assert!(
                known.len() < before,
                "the facts have all their predecessors"
            );
        }
        ordered
    }
}

/// A fact as JSON has it.
pub(crate) fn fact(written: &Value) -> Fact {
    let body = json!({ "facts": [written] }).to_string();
    read_facts(body.as_bytes(), 1).unwrap().remove(0)
}

/// A new fact without fields.
pub(crate) fn made(kind: &str, predecessors: &[(&str, Reference)]) -> Fact {
    let roles = predecessors
        .iter()
        .map(|(role, one)| (Box::from(*role), Predecessors::One(one.clone())));
    build(kind, json!({}), roles.collect())
}

pub(crate) fn specification(text: &str) -> Specification {
    parser::parse(text).unwrap()
}

pub(crate) fn policies(text: &str) -> Policies {
    Policies::new(&PolicyFile::parse(text).unwrap()).unwrap()
}

pub(crate) fn distribution(text: &str) -> Distribution {
    policies(text).distribution
}
