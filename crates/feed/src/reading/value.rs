//! A result, ready to be written as JSON in any layout.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

#[derive(Clone, Debug)]
pub enum Value {
    /// A field that the fact does not have. An object leaves it out, elsewhere it is null.
    Missing,
    Text(String),
    /// A field's JSON, as it was hashed.
    Json(Box<RawValue>),
    /// In this order.
    Object(Vec<(Arc<str>, Value)>),
    Array(Vec<Value>),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Json(json) => json.serialize(serializer),
            Self::Object(members) => {
                let there = members
                    .iter()
                    .filter(|(_, value)| !matches!(value, Self::Missing));
                serializer.collect_map(there.map(|(name, value)| (&**name, value)))
            }
            Self::Array(values) => serializer.collect_seq(values),
        }
    }
}
