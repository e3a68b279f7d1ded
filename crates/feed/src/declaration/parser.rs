//! From text to declarations.

use std::collections::{HashMap, HashSet};

use crate::{
    declaration::{Declaration, Draft, Literal, Value, literal},
    fact::{Hash, Kind},
    specification::{
        Label, Name,
        cursor::{Cursor, Error},
    },
};

/// The predecessors under a role, by the names of declarations. An array of one is not the same as
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    One(Name),
    Many(Vec<Name>),
}

pub(super) struct Parser<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    known: HashMap<Name, Kind>,
}

/// What stands behind a name in a fact.
enum Member {
    Field(Literal),
    Predecessors(Names),
}

impl<'c, 'a> Parser<'c, 'a> {
    pub(super) fn new(cursor: &'c mut Cursor<'a>, known: &[Label]) -> Self {
        let known = known.iter().cloned();
        Self {
            cursor,
            known: known.map(|Label { name, kind }| (name, kind)).collect(),
        }
    }

    pub(super) fn declarations(&mut self) -> Result<Vec<Declaration>, Error> {
        let mut declarations = Vec::new();
        while self.cursor.takes_word("let") {
            let at = self.cursor.at();
            let name = self.cursor.identifier()?;
            if self.known.contains_key(&name) {
                return Err(self.used(at, &name));
            }
            self.cursor.expect(":")?;
            let kind = self.cursor.kind()?;
            self.cursor.expect("=")?;
            let value = self.value(&kind)?;
            self.known.insert(name.clone(), kind.clone());
            declarations.push(Declaration { name, kind, value });
        }
        Ok(declarations)
    }

    fn value(&mut self, kind: &Kind) -> Result<Value, Error> {
        if self.cursor.sees("{") {
            return Ok(Value::Fact(self.draft()?));
        }
        let at = self.cursor.at();
        if self.cursor.takes("#") {
            return self.hash().map(Value::Reference);
        }
        let name = self.declared()?;
        if let Some(other) = self.known.get(&name).filter(|other| *other != kind) {
            let message = format!("Cannot assign a '{other}' to a '{kind}'");
            return Err(self.cursor.error_at(at, message));
        }
        Ok(Value::Same(name))
    }

    fn hash(&mut self) -> Result<Hash, Error> {
        let at = self.cursor.at();
        let text = self
            .cursor
            .take_while(|c| c.is_ascii_alphanumeric() || "+/=".contains(c));
        Hash::read(text).ok_or_else(|| {
            let message = "The hash must be a base64-encoded string of 64 bytes".to_owned();
            self.cursor.error_at(at, message)
        })
    }

    fn draft(&mut self) -> Result<Draft, Error> {
        let mut draft = Draft::default();
        // What was said already, as field and as role: a fact may have a field and a role of one name.
        let mut said = HashSet::new();
        self.cursor.open()?;
        if self.cursor.closes() {
            return Ok(draft);
        }
        loop {
            let at = self.cursor.at();
            let name = self.cursor.identifier()?;
            let member = self.member(at, &name)?;
            let is_field = matches!(member, Member::Field(_));
            if !said.insert((name.clone(), is_field)) {
                return Err(self.used(at, &name));
            }
            match member {
                Member::Field(literal) => draft.fields.push((name, literal)),
                Member::Predecessors(names) => draft.predecessors.push((name, names)),
            }
            if !self.cursor.takes(",") {
                break;
            }
        }
        if self.cursor.closes() {
            Ok(draft)
        } else {
            Err(self.cursor.expected("'}'"))
        }
    }

    fn member(&mut self, at: usize, name: &Name) -> Result<Member, Error> {
        if !self.cursor.takes(":") {
            self.check_declared(at, name)?;
            return Ok(Member::Predecessors(Names::One(name.clone())));
        }
        if let Some(literal) = literal::take(self.cursor)? {
            return Ok(Member::Field(literal));
        }
        if !self.cursor.takes("[") {
            return Ok(Member::Predecessors(Names::One(self.declared()?)));
        }
        let mut names = Vec::new();
        if !self.cursor.sees("]") {
            names.push(self.declared()?);
            while self.cursor.takes(",") {
                names.push(self.declared()?);
            }
        }
        self.cursor.expect("]")?;
        Ok(Member::Predecessors(Names::Many(names)))
    }

    fn declared(&mut self) -> Result<Name, Error> {
        let at = self.cursor.at();
        let name = self.cursor.identifier()?;
        self.check_declared(at, &name)?;
        Ok(name)
    }

    fn check_declared(&self, at: usize, name: &Name) -> Result<(), Error> {
        if self.known.contains_key(name) {
            return Ok(());
        }
        let message = format!("The fact '{name}' has not been defined");
        Err(self.cursor.error_at(at, message))
    }

    fn used(&self, at: usize, name: &Name) -> Error {
        let message = format!("The name '{name}' has already been used");
        self.cursor.error_at(at, message)
    }
}
