//! JSON as JavaScript has it: strings may hold lone surrogates, numbers are doubles, and the
//! canonical text is what facts are hashed by.

mod error;
mod parser;
mod text;
mod writer;

pub use error::{Error, Problem};
pub(crate) use parser::utf8;
pub use parser::{Limits, Parser, parse, parse_bytes, parse_within};
pub use text::{Text, compare};
pub use writer::{write_number, write_string};

/// A value; what it was read from lends its strings.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// Finite: what does not fit into a double is refused when it is read.
    Number(f64),
    String(Text<'a>),
    Array(Vec<Value<'a>>),
    Object(Object<'a>),
}

impl<'a> Value<'a> {
    /// Its canonical text: sorted keys, no white space.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    #[must_use]
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// A string without lone surrogates.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => text.as_str(),
            _ => None,
        }
    }

    /// The kind of a value, for texts such as "expected an object, found a number".
    #[must_use]
    pub fn description(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::String(Text::from(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::String(Text::from(text))
    }
}

/// Members in the order of their keys' UTF-16 code units, each key once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object<'a> {
    members: Vec<(Text<'a>, Value<'a>)>,
}

impl<'a> Object<'a> {
    /// Of two members with one key the later stays, as in JavaScript.
    #[must_use]
    pub fn new(mut members: Vec<(Text<'a>, Value<'a>)>) -> Self {
        if !members.is_sorted_by(|(one, _), (other, _)| one < other) {
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            members.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    std::mem::swap(later, kept);
                }
                same
            });
        }
        Self { members }
    }

    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        let found = self
            .members
            .binary_search_by(|(name, _)| name.compare(key))
            .ok()?;
        Some(&self.members[found].1)
    }

    #[must_use]
    pub fn members(&self) -> &[(Text<'a>, Value<'a>)] {
        &self.members
    }
}

#[cfg(test)]
mod tests;
