use thiserror::Error;

use crate::json;

/// How many characters the name of a type or role may have.
pub const MAX_NAME: usize = 200;

/// Why something cannot be a fact.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidFact {
    #[error(transparent)]
    Json(#[from] json::Error),
    #[error("'{what}' is missing")]
    Missing { what: &'static str },
    #[error("{what} must be {expected}, not {found}")]
    Shape {
        what: Box<str>,
        expected: &'static str,
        found: &'static str,
    },
    #[error("the {what} is empty")]
    Empty { what: &'static str },
    #[error("the {what} is longer than {MAX_NAME} characters")]
    LongName { what: &'static str },
    #[error("the {what} has a control character")]
    Control { what: &'static str },
    #[error("the {what} is not Unicode: it has half of a surrogate pair")]
    Surrogate { what: &'static str },
    /// In JavaScript it would set the prototype, and be missing in the hash.
    #[error("no role can be called '__proto__'")]
    Prototype,
    #[error("{what} is not a hash: expected the 88 characters of a SHA-512 in base64")]
    Hash { what: Box<str> },
    #[error("the role '{role}' is there twice")]
    Twice { role: Box<str> },
    #[error("more than {limit} predecessors")]
    Crowded { limit: usize },
    #[error("the fields are longer than {limit} bytes")]
    Long { limit: usize },
}

/// Checks the name of a type or role. `what` is for the error's text.
///
/// # Errors
///
/// When it is empty, too long, or has control characters: PostgreSQL keeps no NUL, logs no others.
pub fn check_name(what: &'static str, name: &str) -> Result<(), InvalidFact> {
    if name.is_empty() {
        return Err(InvalidFact::Empty { what });
    }
    if name.len() > MAX_NAME && name.chars().nth(MAX_NAME).is_some() {
        return Err(InvalidFact::LongName { what });
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(InvalidFact::Control { what });
    }
    Ok(())
}

/// # Errors
///
/// When it cannot be a role's name.
pub fn check_role(name: &str) -> Result<(), InvalidFact> {
    if name == "__proto__" {
        return Err(InvalidFact::Prototype);
    }
    check_name("role name", name)
}
