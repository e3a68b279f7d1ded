//! From text to declarations.

use std::collections::{HashMap, HashSet};

use crate::{
    declaration::{Declaration, Draft, Literal, Value, literal},
    fact::{Hash, Kind},
    specification::{
        Label, Name,
        scanner::{Error, Scanner},
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
    scanner: &'c mut Scanner<'a>,
    known: HashMap<Name, Kind>,
}

/// The value after a name in a fact.
enum Member {
    Field(Literal),
    Predecessors(Names),
}

impl<'c, 'a> Parser<'c, 'a> {
    pub(super) fn new(scanner: &'c mut Scanner<'a>, known: &[Label]) -> Self {
        let known = known.iter().cloned();
        Self {
            scanner,
            known: known.map(|Label { name, kind }| (name, kind)).collect(),
        }
    }

    pub(super) fn declarations(&mut self) -> Result<Vec<Declaration>, Error> {
        let mut declarations = Vec::new();
        while self.scanner.takes_word("let") {
            let at = self.scanner.at();
            let name = self.scanner.identifier()?;
            if self.known.contains_key(&name) {
                return Err(self.used(at, &name));
            }
            self.scanner.expect(":")?;
            let kind = self.scanner.kind()?;
            self.scanner.expect("=")?;
            let value = self.value(&kind)?;
            self.known.insert(name.clone(), kind.clone());
            declarations.push(Declaration { name, kind, value });
        }
        Ok(declarations)
    }

    fn value(&mut self, kind: &Kind) -> Result<Value, Error> {
        if self.scanner.sees("{") {
            return Ok(Value::Fact(self.draft()?));
        }
        let at = self.scanner.at();
        if self.scanner.takes("#") {
            return self.hash().map(Value::Reference);
        }
        let name = self.declared()?;
        if let Some(other) = self.known.get(&name).filter(|other| *other != kind) {
            let message = format!("Cannot assign a '{other}' to a '{kind}'");
            return Err(self.scanner.error_at(at, message));
        }
        Ok(Value::Same(name))
    }

    fn hash(&mut self) -> Result<Hash, Error> {
        let at = self.scanner.at();
        let text = self
            .scanner
            .take_while(|c| c.is_ascii_alphanumeric() || "+/=".contains(c));
        Hash::read(text).ok_or_else(|| {
            let message = "The hash must be a base64-encoded string of 64 bytes".to_owned();
            self.scanner.error_at(at, message)
        })
    }

    fn draft(&mut self) -> Result<Draft, Error> {
        let mut draft = Draft::default();
        // Names that were used, as fields and as roles: a field and a role may have the same name.
        let mut said = HashSet::new();
        self.scanner.open()?;
        if self.scanner.closes() {
            return Ok(draft);
        }
        loop {
            let at = self.scanner.at();
            let name = self.scanner.identifier()?;
            let member = self.member(at, &name)?;
            let is_field = matches!(member, Member::Field(_));
            if !said.insert((name.clone(), is_field)) {
                return Err(self.used(at, &name));
            }
            match member {
                Member::Field(literal) => draft.fields.push((name, literal)),
                Member::Predecessors(names) => draft.predecessors.push((name, names)),
            }
            if !self.scanner.takes(",") {
                break;
            }
        }
        if self.scanner.closes() {
            Ok(draft)
        } else {
            Err(self.scanner.expected("'}'"))
        }
    }

    fn member(&mut self, at: usize, name: &Name) -> Result<Member, Error> {
        if !self.scanner.takes(":") {
            self.check_declared(at, name)?;
            return Ok(Member::Predecessors(Names::One(name.clone())));
        }
        if let Some(literal) = literal::take(self.scanner)? {
            return Ok(Member::Field(literal));
        }
        if !self.scanner.takes("[") {
            return Ok(Member::Predecessors(Names::One(self.declared()?)));
        }
        let mut names = Vec::new();
        if !self.scanner.sees("]") {
            names.push(self.declared()?);
            while self.scanner.takes(",") {
                names.push(self.declared()?);
            }
        }
        self.scanner.expect("]")?;
        Ok(Member::Predecessors(Names::Many(names)))
    }

    fn declared(&mut self) -> Result<Name, Error> {
        let at = self.scanner.at();
        let name = self.scanner.identifier()?;
        self.check_declared(at, &name)?;
        Ok(name)
    }

    fn check_declared(&self, at: usize, name: &Name) -> Result<(), Error> {
        if self.known.contains_key(name) {
            return Ok(());
        }
        let message = format!("The fact '{name}' has not been defined");
        Err(self.scanner.error_at(at, message))
    }

    fn used(&self, at: usize, name: &Name) -> Error {
        let message = format!("The name '{name}' has already been used");
        self.scanner.error_at(at, message)
    }
}
