//! A fact from its parts.

use super::{
    Fact, Hash, InvalidFact, Kind, Predecessors, Reference, Roles, check_name, check_role,
    write_predecessors,
};
use crate::json::{self, Value};

/// How many predecessors a fact may have. A role counts as one more: it may have none.
pub const MAX_PREDECESSORS: usize = 10_000;

/// How many bytes a fact's fields may have as canonical JSON.
pub const MAX_FIELDS: usize = 4 << 20;

impl Fact {
    /// Sorts what has an order, and computes the hash.
    ///
    /// # Errors
    ///
    /// When no fact can be made of them.
    pub fn new(
        kind: Kind,
        mut predecessors: Roles,
        fields: &Value<'_>,
    ) -> Result<Self, InvalidFact> {
        check_name("type name", &kind)?;
        sort(&mut predecessors)?;
        if fields.as_object().is_none() {
            return Err(super::predecessors::shape(&"'fields'", "an object", fields));
        }
        let mut canonical = String::with_capacity(256);
        canonical.push_str(FIELDS);
        fields.write(&mut canonical);
        let fields = &canonical[FIELDS.len()..];
        if fields.len() > MAX_FIELDS {
            return Err(InvalidFact::Long { limit: MAX_FIELDS });
        }
        let fields = Box::from(fields);
        finish(&mut canonical, &predecessors);
        Ok(Self {
            reference: Reference {
                kind,
                hash: Hash::of(&canonical),
            },
            predecessors,
            fields,
        })
    }

    /// The text that is hashed and signed.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut out = String::with_capacity(self.fields.len() + 256);
        out.push_str(FIELDS);
        out.push_str(&self.fields);
        finish(&mut out, &self.predecessors);
        out
    }

    /// Canonical JSON of the predecessors.
    #[must_use]
    pub fn predecessors_text(&self) -> String {
        let mut out = String::new();
        write_predecessors(&mut out, &self.predecessors);
        out
    }

    /// All predecessors, of all roles.
    pub fn references(&self) -> impl Iterator<Item = (&str, &Reference)> {
        self.predecessors.iter().flat_map(|(role, predecessors)| {
            let role: &str = role;
            predecessors
                .references()
                .iter()
                .map(move |reference| (role, reference))
        })
    }
}

const FIELDS: &str = "{\"fields\":";

fn finish(out: &mut String, predecessors: &Roles) {
    out.push_str(",\"predecessors\":");
    write_predecessors(out, predecessors);
    out.push('}');
}

fn sort(roles: &mut Roles) -> Result<(), InvalidFact> {
    let many: usize = roles
        .iter()
        .map(|(_, predecessors)| 1 + predecessors.references().len())
        .sum();
    if many > MAX_PREDECESSORS {
        return Err(InvalidFact::Crowded {
            limit: MAX_PREDECESSORS,
        });
    }
    roles.sort_by(|(one, _), (other, _)| json::compare(one, other));
    for (at, (role, predecessors)) in roles.iter().enumerate() {
        check_role(role)?;
        if roles.get(at + 1).is_some_and(|(next, _)| next == role) {
            return Err(InvalidFact::Twice { role: role.clone() });
        }
        for reference in predecessors.references() {
            check_name("type name", &reference.kind)?;
        }
    }
    for (_, predecessors) in roles {
        if let Predecessors::Many(references) = predecessors {
            references.sort_by(Reference::compare);
        }
    }
    Ok(())
}
