//! Facts whose only field is their name.

use serde_json::{Value, json};
use wakeline_feed::{
    fact::{Fact, Predecessors},
    json,
};

pub(crate) fn fact(kind: &str, name: impl Into<Value>, roles: &[(&str, &Fact)]) -> Fact {
    let roles = roles.iter().map(|(role, fact)| {
        let one = Predecessors::One(fact.reference.clone());
        ((*role).into(), one)
    });
    let fields = json!({ "name": name.into() }).to_string();
    let fields = json::parse(&fields).unwrap();
    Fact::new(kind.into(), roles.collect(), &fields).unwrap()
}
