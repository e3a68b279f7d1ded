//! Facts with any fields.

use serde_json::Value;
use wakeline_feed::{
    fact::{Fact, Roles},
    json,
};

pub(crate) fn build(kind: &str, fields: Value, roles: Roles) -> Fact {
    let fields = fields.to_string();
    Fact::new(kind.into(), roles, &json::parse(&fields).unwrap()).unwrap()
}
