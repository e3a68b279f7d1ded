//! From declarations to the facts themselves.

use std::collections::HashMap;

use crate::{
    declaration::{Declaration, Draft, Literal, Names, Value},
    fact::{Fact, InvalidFact, Kind, Predecessors, Reference},
    json::{self, Object, Text},
    specification::Name,
};

/// A fact and its name in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFact {
    pub name: Name,
    pub reference: Reference,
    /// `None` if it was declared by its hash.
    pub fact: Option<Fact>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("The fact '{0}' has not been defined")]
    Unknown(Name),
    #[error("'{name}' cannot be a fact: {why}")]
    InvalidFact { name: Name, why: InvalidFact },
    #[error("References are not allowed while saving.")]
    Reference,
}

/// The caller's own facts, and then the declared ones.
pub fn resolve(
    declarations: &[Declaration],
    known: Vec<NamedFact>,
) -> Result<Vec<NamedFact>, Error> {
    let mut resolved = ResolvedFacts::default();
    known.into_iter().for_each(|known| resolved.add(known));
    for declaration in declarations {
        let declared = resolved.declared(declaration)?;
        resolved.add(declared);
    }
    Ok(resolved.facts)
}

/// The facts that are to be saved, each behind its predecessors.
pub fn saved(declared: Vec<NamedFact>) -> Result<Vec<Fact>, Error> {
    let facts = declared.into_iter();
    facts
        .map(|declared| declared.fact.ok_or(Error::Reference))
        .collect()
}

#[derive(Default)]
struct ResolvedFacts {
    facts: Vec<NamedFact>,
    by_name: HashMap<Name, usize>,
}

impl ResolvedFacts {
    fn add(&mut self, declared: NamedFact) {
        self.by_name.insert(declared.name.clone(), self.facts.len());
        self.facts.push(declared);
    }

    fn get(&self, name: &Name) -> Result<&NamedFact, Error> {
        let index = self.by_name.get(name);
        index
            .and_then(|index| self.facts.get(*index))
            .ok_or_else(|| Error::Unknown(name.clone()))
    }

    fn declared(&self, declaration: &Declaration) -> Result<NamedFact, Error> {
        let Declaration { name, kind, value } = declaration;
        let name = name.clone();
        Ok(match value {
            Value::Reference(hash) => NamedFact {
                name,
                reference: Reference {
                    kind: kind.clone(),
                    hash: *hash,
                },
                fact: None,
            },
            Value::Same(other) => NamedFact {
                name,
                ..self.get(other)?.clone()
            },
            Value::Fact(draft) => {
                let fact = self.fact(&name, kind, draft)?;
                NamedFact {
                    name,
                    reference: fact.reference.clone(),
                    fact: Some(fact),
                }
            }
        })
    }

    fn fact(&self, name: &Name, kind: &Kind, draft: &Draft) -> Result<Fact, Error> {
        let reference = |name: &Name| Ok(self.get(name)?.reference.clone());
        let mut predecessors = Vec::new();
        for (role, names) in &draft.predecessors {
            let under = match names {
                Names::One(name) => Predecessors::One(reference(name)?),
                Names::Many(names) => {
                    let references: Result<_, Error> = names.iter().map(reference).collect();
                    Predecessors::Many(references?)
                }
            };
            predecessors.push((Box::from(&**role), under));
        }
        let unfit = |why| Error::InvalidFact {
            name: name.clone(),
            why,
        };
        let fields: Result<Vec<_>, InvalidFact> = draft
            .fields
            .iter()
            .map(|(name, literal)| Ok((Text::from(&**name), value(literal)?)))
            .collect();
        let fields = json::Value::Object(Object::new(fields.map_err(unfit)?));
        Fact::new(kind.clone(), predecessors, &fields).map_err(unfit)
    }
}

fn value(literal: &Literal) -> Result<json::Value<'_>, json::Error> {
    Ok(match literal {
        Literal::Null => json::Value::Null,
        Literal::Bool(value) => json::Value::Bool(*value),
        Literal::Number(number) => json::Value::Number(*number),
        Literal::String(text) => json::parse(text)?,
    })
}
