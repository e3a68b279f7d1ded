//! The predecessors of a fact under its roles, and their JSON.

use std::{cmp::Ordering, fmt::Display};

use super::{Hash, InvalidFact, Kinds, Predecessors, Reference, check_role};
use crate::json::{self, Object, Text, Value};

/// Role and predecessors, in the order of the roles' UTF-16 code units.
pub type Roles = Vec<(Box<str>, Predecessors)>;

impl Reference {
    /// The order in arrays of predecessors, which is part of the hash.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        self.hash
            .compare_text(&other.hash)
            .then_with(|| json::compare(&self.kind, &other.kind))
    }

    /// Appends `{"type":…,"hash":…}`, as feeds and facts are answered.
    pub fn write(&self, out: &mut String) {
        out.push_str("{\"type\":");
        json::write_string(out, &self.kind);
        out.push_str(",\"hash\":\"");
        self.hash.write(out);
        out.push_str("\"}");
    }

    fn write_canonical(&self, out: &mut String) {
        out.push_str("{\"hash\":\"");
        self.hash.write(out);
        out.push_str("\",\"type\":");
        json::write_string(out, &self.kind);
        out.push('}');
    }

    /// # Errors
    ///
    /// When it is no object with a type and a hash. `what` is for the error's text.
    pub fn read(
        value: &Value<'_>,
        what: &dyn Display,
        kinds: &mut Kinds,
    ) -> Result<Self, InvalidFact> {
        let Some(object) = value.as_object() else {
            return Err(shape(what, "a reference {type, hash}", value));
        };
        let kind = string(object, "type")?;
        let kind = kind
            .as_str()
            .ok_or(InvalidFact::Surrogate { what: "type name" })?;
        let hash = string(object, "hash")?.as_str().and_then(Hash::read);
        Ok(Self {
            kind: kinds.get(kind)?,
            hash: hash.ok_or_else(|| InvalidFact::Hash {
                what: format!("'hash' of {what}").into(),
            })?,
        })
    }
}

/// The canonical text, as it is kept in the stores.
///
/// # Errors
///
/// When it is not that of predecessors.
pub fn read_predecessors(text: &str, kinds: &mut Kinds) -> Result<Roles, InvalidFact> {
    if text == "{}" {
        return Ok(Roles::new());
    }
    read_roles(&json::parse(text)?, kinds)
}

/// The references of a JSON array.
///
/// # Errors
///
/// When it is no array of references.
pub fn read_reference_list(text: &str, kinds: &mut Kinds) -> Result<Vec<Reference>, InvalidFact> {
    match json::parse(text)? {
        Value::Array(elements) => read_elements(&elements, "the references", kinds),
        other => Err(shape(&"the references", "an array", &other)),
    }
}

#[must_use]
pub fn write_reference_list(references: &[Reference]) -> String {
    let mut out = String::new();
    write_elements(&mut out, references);
    out
}

fn read_elements(
    elements: &[Value<'_>],
    list: impl Display,
    kinds: &mut Kinds,
) -> Result<Vec<Reference>, InvalidFact> {
    let element = |(index, element)| {
        let what = format_args!("element {index} of {list}");
        Reference::read(element, &what, kinds)
    };
    elements.iter().enumerate().map(element).collect()
}

fn write_elements(out: &mut String, references: &[Reference]) {
    out.push('[');
    for (index, reference) in references.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        reference.write_canonical(out);
    }
    out.push(']');
}

/// Appends the canonical text.
pub fn write_predecessors(out: &mut String, roles: &[(Box<str>, Predecessors)]) {
    out.push('{');
    for (index, (role, predecessors)) in roles.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        json::write_string(out, role);
        out.push(':');
        match predecessors {
            Predecessors::One(reference) => reference.write_canonical(out),
            Predecessors::Many(references) => write_elements(out, references),
        }
    }
    out.push('}');
}

/// Roles in any JSON form of a fact; arrays stay as they are.
pub(super) fn read_roles(value: &Value<'_>, kinds: &mut Kinds) -> Result<Roles, InvalidFact> {
    let Some(object) = value.as_object() else {
        return Err(shape(&"'predecessors'", "an object", value));
    };
    let mut roles = Roles::with_capacity(object.members().len());
    for (name, value) in object.members() {
        let role = role_name(name)?;
        let predecessors = match value {
            Value::Array(elements) => {
                let list = format_args!("role '{role}'");
                Predecessors::Many(read_elements(elements, list, kinds)?)
            }
            one => Predecessors::One(Reference::read(one, &format_args!("role '{role}'"), kinds)?),
        };
        roles.push((role.into(), predecessors));
    }
    Ok(roles)
}

/// # Errors
///
/// When it cannot be a role's name. Errors about the role's predecessors repeat it, so it is short.
pub(crate) fn role_name<'a>(name: &'a Text<'_>) -> Result<&'a str, InvalidFact> {
    let name = name
        .as_str()
        .ok_or(InvalidFact::Surrogate { what: "role name" })?;
    check_role(name)?;
    Ok(name)
}

pub(super) fn string<'a, 'v>(
    object: &'a Object<'v>,
    what: &'static str,
) -> Result<&'a Text<'v>, InvalidFact> {
    match object.get(what) {
        None => Err(InvalidFact::Missing { what }),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(shape(&format_args!("'{what}'"), "a string", other)),
    }
}

pub(crate) fn shape(what: &dyn Display, expected: &'static str, found: &Value<'_>) -> InvalidFact {
    InvalidFact::Shape {
        what: what.to_string().into(),
        expected,
        found: found.description(),
    }
}
