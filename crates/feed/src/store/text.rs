//! References as they are kept: JSON, which another program can read too.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::{SerializeMap, SerializeSeq},
};
use wakeline_store::Error;

use super::names::Known;
use crate::fact::{Hash, Predecessors, Reference};

/// An object of roles, in their order.
pub(super) fn write_predecessors(predecessors: &[(Box<str>, Predecessors)]) -> String {
    serde_json::to_string(&ByRole(predecessors)).expect("texts are JSON")
}

pub(super) fn read_predecessors(
    text: &str,
    known: &Known,
) -> Result<Vec<(Box<str>, Predecessors)>, Error> {
    let Roles(roles) = serde_json::from_str(text).map_err(wrong)?;
    let roles = roles.into_iter().map(|(role, kept)| {
        let predecessors = match kept {
            Kept::One(one) => Predecessors::One(one.read(known)?),
            Kept::Many(many) => {
                let many = many.into_iter().map(|one| one.read(known));
                Predecessors::Many(many.collect::<Result<_, _>>()?)
            }
        };
        Ok((role.into(), predecessors))
    });
    roles.collect()
}

pub(super) fn write_references(references: &[Reference]) -> String {
    let references: Vec<_> = references.iter().map(KeptReference::of).collect();
    serde_json::to_string(&references).expect("texts are JSON")
}

pub(super) fn read_references(text: &str, known: &Known) -> Result<Vec<Reference>, Error> {
    let kept: Vec<KeptReference<'_>> = serde_json::from_str(text).map_err(wrong)?;
    kept.into_iter().map(|one| one.read(known)).collect()
}

/// A list of one.
pub(super) fn read_owner(text: Option<&str>, known: &Known) -> Result<Option<Reference>, Error> {
    let references = text.map(|text| read_references(text, known)).transpose()?;
    Ok(references.and_then(|mut references| references.pop()))
}

fn wrong(error: impl fmt::Display) -> Error {
    Error::Failed(format!("a stored reference cannot be read: {error}"))
}

#[derive(Serialize, Deserialize)]
struct KeptReference<'a> {
    #[serde(borrow)]
    hash: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

impl<'a> KeptReference<'a> {
    fn of(reference: &'a Reference) -> Self {
        Self {
            hash: reference.hash.to_string().into(),
            kind: Cow::Borrowed(&reference.kind),
        }
    }

    fn read(&self, known: &Known) -> Result<Reference, Error> {
        let hash = Hash::read(&self.hash).ok_or_else(|| wrong("not a hash"))?;
        let kind = known.shared(&self.kind);
        Ok(Reference { kind, hash })
    }
}

struct ByRole<'a>(&'a [(Box<str>, Predecessors)]);

impl Serialize for ByRole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (role, predecessors) in self.0 {
            map.serialize_entry(role, &UnderRole(predecessors))?;
        }
        map.end()
    }
}

struct UnderRole<'a>(&'a Predecessors);

impl Serialize for UnderRole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Predecessors::One(one) => KeptReference::of(one).serialize(serializer),
            Predecessors::Many(many) => {
                let mut list = serializer.serialize_seq(Some(many.len()))?;
                for one in many {
                    list.serialize_element(&KeptReference::of(one))?;
                }
                list.end()
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Kept<'a> {
    #[serde(borrow)]
    One(KeptReference<'a>),
    Many(Vec<KeptReference<'a>>),
}

/// In the order of the text, which a map would lose.
struct Roles<'a>(Vec<(String, Kept<'a>)>);

impl<'de> Deserialize<'de> for Roles<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Roles<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object of roles")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut roles = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    roles.push(entry);
                }
                Ok(Roles(roles))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
