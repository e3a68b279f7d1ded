//! A JSON object and nothing else.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, Visitor, value::MapAccessDeserializer},
    forward_to_deserialize_any,
};

use crate::unknown::refusal;

/// Reads `T` from an object only, and refuses fields that `T` does not have.
///
/// serde would read a struct from a list of its values too, in the order of its fields, which nobody
/// has promised to keep.
#[derive(Clone, Debug)]
pub struct Object<T>(pub T);

/// Like [`Object`], but other fields are allowed.
#[derive(Clone, Debug)]
pub(crate) struct OpenObject<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Members {
            is_open: false,
            of: PhantomData,
        };
        deserializer.deserialize_map(members).map(Object)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OpenObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Members {
            is_open: true,
            of: PhantomData,
        };
        deserializer.deserialize_map(members).map(OpenObject)
    }
}

struct Members<T> {
    is_open: bool,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, members: M) -> Result<T, M::Error> {
        if self.is_open {
            T::deserialize(MapAccessDeserializer::new(members))
        } else {
            T::deserialize(StructDeserializer(members))
        }
    }
}

/// Learns from the struct which fields it has.
struct StructDeserializer<M>(M);

impl<'de, M: MapAccess<'de>> Deserializer<'de> for StructDeserializer<M> {
    type Error = M::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, M::Error> {
        visitor.visit_map(KnownMembers {
            members: self.0,
            of: name,
            fields,
        })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, M::Error> {
        visitor.visit_map(self.0)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct KnownMembers<M> {
    members: M,
    of: &'static str,
    fields: &'static [&'static str],
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for KnownMembers<M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        self.members.next_key_seed(KnownKey {
            inner: seed,
            of: self.of,
            fields: self.fields,
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.members.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.members.size_hint()
    }
}

/// Looks at a key on its way from the text to the struct, without a copy: as the seed, then as the
/// deserializer, then as the visitor.
struct KnownKey<I> {
    inner: I,
    of: &'static str,
    fields: &'static [&'static str],
}

impl<I> KnownKey<I> {
    fn check<E: Error>(&self, key: &str) -> Result<(), E> {
        if self.fields.contains(&key) {
            return Ok(());
        }
        match refusal(self.of, key, self.fields) {
            None => Ok(()),
            // `json_at` reads the name out of this text.
            Some(unknown) => Err(E::custom(format!(
                "unknown field `{}`: {unknown}",
                unknown.name
            ))),
        }
    }
}

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for KnownKey<K> {
    type Value = K::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Value, D::Error> {
        let (of, fields) = (self.of, self.fields);
        self.inner.deserialize(KnownKey {
            inner: deserializer,
            of,
            fields,
        })
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for KnownKey<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (of, fields) = (self.of, self.fields);
        self.inner.deserialize_str(KnownKey {
            inner: visitor,
            of,
            fields,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for KnownKey<V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(out)
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<V::Value, E> {
        self.check(key)?;
        self.inner.visit_str(key)
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<V::Value, E> {
        self.check(key)?;
        self.inner.visit_borrowed_str(key)
    }

    fn visit_string<E: Error>(self, key: String) -> Result<V::Value, E> {
        self.check(&key)?;
        self.inner.visit_string(key)
    }
}
