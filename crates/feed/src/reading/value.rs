//! A result, ready to be written as JSON in any layout.

use std::{fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
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

/// The members of a JSON object, in their order.
pub(super) struct Members(pub(super) Vec<(Arc<str>, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    members.push((name.into(), value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}
