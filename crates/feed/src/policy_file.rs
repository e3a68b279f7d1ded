//! Policy files: who may say what, who may know what, and what is forgotten.

use crate::{
    fact::Kind,
    specification::{
        Specification,
        cursor::{Cursor, Error},
        parser,
    },
};

/// The rules of a file, or of several, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFile {
    pub authorization: Vec<Authorization>,
    pub distribution: Vec<Distribution>,
    pub purge: Vec<Specification>,
}

/// Who may save facts of a type. Those of one type are alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    pub kind: Kind,
    pub who: Who,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// `any T`
    Anybody,
    /// `no T`
    Nobody,
    /// From the fact, its one given, to those who may save it.
    Found(Specification),
}

/// `share specification with user`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    pub share: Specification,
    /// `None`: everyone.
    pub with: Option<Specification>,
}

impl PolicyFile {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut file = Self::default();
        let mut cursor = Cursor::new(text)?;
        while !cursor.at_end() {
            if cursor.takes_word("authorization") {
                rules(&mut cursor, &mut file.authorization, authorization)?;
            } else if cursor.takes_word("distribution") {
                rules(&mut cursor, &mut file.distribution, distribution)?;
            } else if cursor.takes_word("purge") {
                rules(&mut cursor, &mut file.purge, parser::specification)?;
            } else {
                return Err(
                    cursor.expected("'authorization', 'distribution', 'purge' or end of input")
                );
            }
        }
        Ok(file)
    }

    /// The rules of both.
    pub fn merge(&mut self, other: Self) {
        self.authorization.extend(other.authorization);
        self.distribution.extend(other.distribution);
        self.purge.extend(other.purge);
    }
}

fn rules<T>(
    cursor: &mut Cursor<'_>,
    rules: &mut Vec<T>,
    rule: impl Fn(&mut Cursor<'_>) -> Result<T, Error>,
) -> Result<(), Error> {
    cursor.open()?;
    while !cursor.closes() {
        rules.push(rule(cursor)?);
    }
    Ok(())
}

fn authorization(cursor: &mut Cursor<'_>) -> Result<Authorization, Error> {
    for (word, who) in [("any", Who::Anybody), ("no", Who::Nobody)] {
        if cursor.takes_word(word) {
            let kind = cursor.kind()?;
            return Ok(Authorization { kind, who });
        }
    }
    let at = cursor.at();
    let specification = parser::specification(cursor)?;
    let [given] = specification.givens.as_slice() else {
        let message = "A specification in an authorization rule must have exactly one given label";
        return Err(cursor.error_at(at, message.to_owned()));
    };
    Ok(Authorization {
        kind: given.label.kind.clone(),
        who: Who::Found(specification),
    })
}

fn distribution(cursor: &mut Cursor<'_>) -> Result<Distribution, Error> {
    cursor.expect_word("share")?;
    let share = parser::specification(cursor)?;
    cursor.expect_word("with")?;
    let with = if cursor.takes_word("everyone") {
        None
    } else {
        Some(parser::specification(cursor)?)
    };
    Ok(Distribution { share, with })
}
