//! Declared facts: `let site: Blog.Site = { domain: "a.com" }`, before a specification or to be
//! written.

pub mod facts;
mod literal;
mod parser;

use crate::{
    fact::{Hash, Kind},
    specification::{
        Label, Name,
        scanner::{Error, Scanner},
    },
};

pub use parser::Names;

#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    pub name: Name,
    pub kind: Kind,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Fact(Draft),
    /// `#hash`: of a fact that is stored.
    Reference(Hash),
    /// The fact of a declaration before, or one that the caller knows.
    Same(Name),
}

/// A fact whose predecessors are names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// Each once, in the order of the text.
    pub fields: Vec<(Name, Literal)>,
    /// Each role once, in the order of the text.
    pub predecessors: Vec<(Name, Names)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    /// Finite.
    Number(f64),
    /// As JSON, with its quotes: an escape may be half of a surrogate pair, which no `str` can
    /// hold.
    String(Box<str>),
}

/// A text of declarations only. `known` are the facts that the caller declares, such as `me`.
pub fn parse(text: &str, known: &[Label]) -> Result<Vec<Declaration>, Error> {
    let mut scanner = Scanner::new(text)?;
    let declarations = declarations(&mut scanner, known)?;
    scanner.expect_end()?;
    Ok(declarations)
}

/// The declarations at the scanner, as many as there are.
pub fn declarations(scanner: &mut Scanner<'_>, known: &[Label]) -> Result<Vec<Declaration>, Error> {
    parser::Parser::new(scanner, known).declarations()
}
