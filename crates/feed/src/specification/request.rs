//! A request's text: declarations, and a specification whose givens they are.

use crate::{
    declaration::{self, Declaration},
    specification::{
        Label, Specification, parser,
        scanner::{Error, Scanner},
    },
};

#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub declarations: Vec<Declaration>,
    /// Each of its givens is declared, or known to the caller, by its name and with its type.
    pub specification: Specification,
}

/// Whether text after the specification is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrailingText {
    /// Feeds are answered all the same, as clients are used to.
    Ignored,
    Refused,
}

/// `known` are the facts that the caller declares, such as `me`.
pub fn parse(text: &str, known: &[Label], trailing: TrailingText) -> Result<Request, Error> {
    let mut scanner = Scanner::new(text)?;
    let declarations = declaration::declarations(&mut scanner, known)?;
    let at = scanner.at();
    let specification = parser::specification(&mut scanner)?;
    if trailing == TrailingText::Refused {
        scanner.expect_end()?;
    }
    for (index, given) in specification.givens.iter().enumerate() {
        let Label { name, kind } = &given.label;
        let mut declared = declarations
            .iter()
            .map(|declaration| (&declaration.name, &declaration.kind))
            .chain(known.iter().map(|label| (&label.name, &label.kind)));
        let message = match declared.find(|(other, _)| *other == name) {
            Some((_, other)) if other == kind => continue,
            Some((_, other)) => format!(
                "The type of start fact {index} ({other}) does not match the type of input {index} ({kind})"
            ),
            None => format!("No fact named {name} was declared"),
        };
        return Err(scanner.error_at(at, message));
    }
    Ok(Request {
        declarations,
        specification,
    })
}
