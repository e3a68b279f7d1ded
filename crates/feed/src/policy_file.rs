//! Policy files: which users may save facts, which may follow feeds, and which facts are purged.

use crate::{
    fact::Kind,
    specification::{
        Specification, parser,
        scanner::{Error, Scanner},
    },
};

/// The rules of a file, or of several, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFile {
    pub authorization: Vec<Authorization>,
    pub distribution: Vec<Distribution>,
    pub purge: Vec<Specification>,
}

/// The users who may save facts of a type. Several rules of one type are alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    pub kind: Kind,
    pub who: AllowedUsers,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedUsers {
    /// `any T`
    Anybody,
    /// `no T`
    Nobody,
    /// From the fact, its one given, to the users who may save it.
    Users(Specification),
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
        let mut scanner = Scanner::new(text)?;
        while !scanner.at_end() {
            if scanner.takes_word("authorization") {
                rules(&mut scanner, &mut file.authorization, authorization)?;
            } else if scanner.takes_word("distribution") {
                rules(&mut scanner, &mut file.distribution, distribution)?;
            } else if scanner.takes_word("purge") {
                rules(&mut scanner, &mut file.purge, parser::specification)?;
            } else {
                return Err(
                    scanner.expected("'authorization', 'distribution', 'purge' or end of input")
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
    scanner: &mut Scanner<'_>,
    rules: &mut Vec<T>,
    rule: impl Fn(&mut Scanner<'_>) -> Result<T, Error>,
) -> Result<(), Error> {
    scanner.open()?;
    while !scanner.closes() {
        rules.push(rule(scanner)?);
    }
    Ok(())
}

fn authorization(scanner: &mut Scanner<'_>) -> Result<Authorization, Error> {
    for (word, who) in [("any", AllowedUsers::Anybody), ("no", AllowedUsers::Nobody)] {
        if scanner.takes_word(word) {
            let kind = scanner.kind()?;
            return Ok(Authorization { kind, who });
        }
    }
    let at = scanner.at();
    let specification = parser::specification(scanner)?;
    let [given] = specification.givens.as_slice() else {
        let message = "A specification in an authorization rule must have exactly one given label";
        return Err(scanner.error_at(at, message.to_owned()));
    };
    Ok(Authorization {
        kind: given.label.kind.clone(),
        who: AllowedUsers::Users(specification),
    })
}

fn distribution(scanner: &mut Scanner<'_>) -> Result<Distribution, Error> {
    scanner.expect_word("share")?;
    let share = parser::specification(scanner)?;
    scanner.expect_word("with")?;
    let with = if scanner.takes_word("everyone") {
        None
    } else {
        Some(parser::specification(scanner)?)
    };
    Ok(Distribution { share, with })
}
