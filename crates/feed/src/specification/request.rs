//! What is asked for: declarations and a specification whose givens they are.

use crate::{
    declaration::{self, Declaration},
    specification::{
        Label, Specification,
        cursor::{Cursor, Error},
        parser,
    },
};

#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub declarations: Vec<Declaration>,
    /// Each of its givens is declared, or known to the caller, by its name and with its type.
    pub specification: Specification,
}

/// What becomes of text behind the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailing {
    /// Feeds are answered all the same, as clients are used to.
    Ignored,
    Refused,
}

/// `known` are the facts that the caller declares, such as `me`.
pub fn parse(text: &str, known: &[Label], trailing: Trailing) -> Result<Request, Error> {
    let mut cursor = Cursor::new(text)?;
    let declarations = declaration::declarations(&mut cursor, known)?;
    let at = cursor.at();
    let specification = parser::specification(&mut cursor)?;
    if trailing == Trailing::Refused {
        cursor.expect_end()?;
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
        return Err(cursor.error_at(at, message));
    }
    Ok(Request {
        declarations,
        specification,
    })
}
