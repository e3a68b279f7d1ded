//! From text to specifications. Everything that it returns is checked: names, types and limits.

use crate::specification::{
    Component, Condition, Existential, GivenLabel, Label, Match, Name, Path, Projection, Role,
    SingleProjection, Specification,
    scanner::{Error, MAX_PARTS, MAX_TEXT, Scanner},
    scope::{Scope, based_on, findable, used},
};

/// How much longer a feed may be than the specification that it is of: indents, mostly.
const FEED_GROWTH: usize = 4;

/// A text that is one specification.
pub fn parse(text: &str) -> Result<Specification, Error> {
    let mut scanner = Scanner::new(text)?;
    let specification = specification(&mut scanner)?;
    scanner.expect_end()?;
    Ok(specification)
}

/// A feed as [`Specification::describe`] wrote it. A feed may name a given twice, and what stands
/// once in a specification may be both a match and a condition of it.
pub fn parse_feed(text: &str) -> Result<Specification, Error> {
    let mut scanner = Scanner::of_length(text, FEED_GROWTH * MAX_TEXT)?;
    let feed = Parser::new(&mut scanner, RepeatedGivens::Allowed).specification()?;
    scanner.expect_end()?;
    Ok(feed)
}

/// The specification at the scanner.
pub fn specification(scanner: &mut Scanner<'_>) -> Result<Specification, Error> {
    Parser::new(scanner, RepeatedGivens::Refused).specification()
}

/// Whether a given may stand twice, with one type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RepeatedGivens {
    Allowed,
    Refused,
}

struct Parser<'c, 'a> {
    scanner: &'c mut Scanner<'a>,
    scope: Scope,
    repeated: RepeatedGivens,
}

impl<'c, 'a> Parser<'c, 'a> {
    fn new(scanner: &'c mut Scanner<'a>, repeated: RepeatedGivens) -> Self {
        scanner.start_parts(match repeated {
            RepeatedGivens::Allowed => FEED_GROWTH * MAX_PARTS,
            RepeatedGivens::Refused => MAX_PARTS,
        });
        Self {
            scanner,
            scope: Scope::default(),
            repeated,
        }
    }

    fn specification(&mut self) -> Result<Specification, Error> {
        let givens = self.givens()?;
        let matches = self.matches()?;
        let projection = self.projection()?;
        Ok(Specification {
            givens,
            matches,
            projection,
        })
    }

    fn givens(&mut self) -> Result<Vec<GivenLabel>, Error> {
        self.scanner.expect("(")?;
        if self.scanner.sees(")") {
            return Err(self
                .scanner
                .error("The specification must contain at least one given label".to_owned()));
        }
        let mut givens = vec![self.given()?];
        while self.scanner.takes(",") {
            givens.push(self.given()?);
        }
        self.scanner.expect(")")?;
        Ok(givens)
    }

    fn given(&mut self) -> Result<GivenLabel, Error> {
        let at = self.scanner.at();
        let label = self.label()?;
        let is_repeated = self.repeated == RepeatedGivens::Allowed
            && self.scope.kind(&label.name) == Some(&label.kind);
        if !is_repeated {
            self.place(at, |scope| scope.unused(&label.name))?;
            self.scope.add(label.clone());
        }
        let mut conditions = Vec::new();
        if self.scanner.takes("[") {
            if self.scanner.sees("]") {
                let message = format!("The given '{}' has no conditions", label.name);
                return Err(self.scanner.error(message));
            }
            while !self.scanner.takes("]") {
                conditions.push(self.existential(&label)?);
            }
        }
        Ok(GivenLabel { label, conditions })
    }

    fn label(&mut self) -> Result<Label, Error> {
        self.scanner.part()?;
        let name = self.scanner.identifier()?;
        self.scanner.expect(":")?;
        let kind = self.scanner.kind()?;
        Ok(Label { name, kind })
    }

    fn matches(&mut self) -> Result<Vec<Match>, Error> {
        self.scanner.open()?;
        let mut matches = Vec::new();
        while !self.scanner.closes() {
            matches.push(self.one_match()?);
        }
        Ok(matches)
    }

    fn one_match(&mut self) -> Result<Match, Error> {
        let at = self.scanner.at();
        let unknown = self.label()?;
        self.place(at, |scope| scope.unused(&unknown.name))?;
        self.scanner.expect("[")?;
        if self.scanner.sees("]") {
            let message = format!("The match for '{}' has no conditions", unknown.name);
            return Err(self.scanner.error(message));
        }
        let mut conditions = Vec::new();
        while !self.scanner.takes("]") {
            conditions.push(if self.scanner.sees_existential() {
                let condition = self.inside(|parser| {
                    parser.scope.add(unknown.clone());
                    parser.existential(&unknown)
                })?;
                Condition::Existential(condition)
            } else {
                Condition::Path(self.path(&unknown)?)
            });
        }
        let found = Match {
            unknown,
            conditions,
        };
        self.place(at, |_| findable(&found))?;
        self.scope.add(found.unknown.clone());
        Ok(found)
    }

    /// Of an unknown that is in the scope already.
    fn existential(&mut self, unknown: &Label) -> Result<Existential, Error> {
        let at = self.scanner.at();
        self.scanner.part()?;
        let exists = !self.scanner.takes("!");
        self.scanner.expect_word("E")?;
        let matches = self.inside(Self::matches)?;
        self.place(at, |_| based_on(&matches, unknown))?;
        Ok(Existential { exists, matches })
    }

    fn path(&mut self, unknown: &Label) -> Result<Path, Error> {
        let at = self.scanner.at();
        self.scanner.part()?;
        if self.scanner.identifier()? != unknown.name {
            let message = format!(
                "The unknown '{}' must appear on the left side of the path",
                unknown.name
            );
            return Err(self.scanner.error_at(at, message));
        }
        let left = self.roles()?;
        self.scanner.expect("=")?;
        let right_label = self.named()?;
        let right = self.roles()?;
        let path = Path {
            left,
            right_label,
            right,
        };
        self.place(at, |scope| scope.agrees(unknown, &path))?;
        Ok(path)
    }

    fn roles(&mut self) -> Result<Vec<Role>, Error> {
        let mut roles = Vec::new();
        while self.scanner.takes("->") {
            let Label { name, kind } = self.label()?;
            roles.push(Role { name, kind });
        }
        Ok(roles)
    }

    fn projection(&mut self) -> Result<Projection, Error> {
        if !self.scanner.takes("=>") {
            return Ok(Projection::empty());
        }
        if !self.scanner.sees("{") {
            return Ok(Projection::Single(self.single()?));
        }
        self.scanner.open()?;
        let mut components: Vec<(Name, Component)> = Vec::new();
        while !self.scanner.closes() {
            let at = self.scanner.at();
            self.scanner.part()?;
            let name = self.scanner.identifier()?;
            if components.iter().any(|(other, _)| *other == name) {
                return Err(self.scanner.error_at(at, used(&name)));
            }
            self.scanner.expect("=")?;
            let component = self.component()?;
            components.push((name, component));
        }
        Ok(Projection::Composite(components))
    }

    fn component(&mut self) -> Result<Component, Error> {
        if !self.scanner.sees("{") {
            return Ok(Component::Single(self.single()?));
        }
        self.inside(|parser| {
            let matches = parser.matches()?;
            let projection = parser.projection()?;
            Ok(Component::Collection {
                matches,
                projection,
            })
        })
    }

    fn single(&mut self) -> Result<SingleProjection, Error> {
        if self.scanner.takes("#") {
            return Ok(SingleProjection::Hash(self.named()?));
        }
        if self.scanner.takes("@") {
            return Ok(SingleProjection::Time(self.named()?));
        }
        let label = self.named()?;
        if self.scanner.takes(".") {
            let field = self.scanner.identifier()?;
            return Ok(SingleProjection::Field { label, field });
        }
        Ok(SingleProjection::Fact(label))
    }

    /// The name of a label in the scope.
    fn named(&mut self) -> Result<Name, Error> {
        let at = self.scanner.at();
        let name = self.scanner.identifier()?;
        self.place(at, |scope| scope.named(&name).map(drop))?;
        Ok(name)
    }

    fn inside<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let mark = self.scope.mark();
        let result = run(self);
        self.scope.forget(mark);
        result
    }

    /// A check's error, with its place in the text.
    fn place(
        &self,
        at: usize,
        check: impl FnOnce(&Scope) -> Result<(), String>,
    ) -> Result<(), Error> {
        check(&self.scope).map_err(|message| self.scanner.error_at(at, message))
    }
}
