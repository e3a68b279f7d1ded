//! From text to specifications. Everything that it returns is checked: names, types and limits.

use crate::specification::{
    Component, Condition, Existential, Given, Label, Match, Name, Path, Projection, Role, Single,
    Specification,
    cursor::{Cursor, Error, MAX_PARTS, MAX_TEXT},
    scope::{Scope, based_on, findable, used},
};

/// How much longer a feed may be than the specification that it is of: indents, mostly.
const FEED_GROWTH: usize = 4;

/// A text that is one specification.
pub fn parse(text: &str) -> Result<Specification, Error> {
    let mut cursor = Cursor::new(text)?;
    let specification = specification(&mut cursor)?;
    cursor.expect_end()?;
    Ok(specification)
}

/// A feed as [`Specification::describe`] wrote it. A feed may name a given twice, and what stands
/// once in a specification may be both a match and a condition of it.
pub fn parse_feed(text: &str) -> Result<Specification, Error> {
    let mut cursor = Cursor::of_length(text, FEED_GROWTH * MAX_TEXT)?;
    let feed = Parser::new(&mut cursor, Repeated::Allowed).specification()?;
    cursor.expect_end()?;
    Ok(feed)
}

/// The specification at the cursor.
pub fn specification(cursor: &mut Cursor<'_>) -> Result<Specification, Error> {
    Parser::new(cursor, Repeated::Refused).specification()
}

/// Whether a given may stand twice, with one type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Allowed,
    Refused,
}

struct Parser<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
    scope: Scope,
    repeated: Repeated,
}

impl<'c, 'a> Parser<'c, 'a> {
    fn new(cursor: &'c mut Cursor<'a>, repeated: Repeated) -> Self {
        cursor.start_parts(match repeated {
            Repeated::Allowed => FEED_GROWTH * MAX_PARTS,
            Repeated::Refused => MAX_PARTS,
        });
        Self {
            cursor,
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

    fn givens(&mut self) -> Result<Vec<Given>, Error> {
        self.cursor.expect("(")?;
        if self.cursor.sees(")") {
            return Err(self
                .cursor
                .error("The specification must contain at least one given label".to_owned()));
        }
        let mut givens = vec![self.given()?];
        while self.cursor.takes(",") {
            givens.push(self.given()?);
        }
        self.cursor.expect(")")?;
        Ok(givens)
    }

    fn given(&mut self) -> Result<Given, Error> {
        let at = self.cursor.at();
        let label = self.label()?;
        let recheck_after =
            self.repeated == Repeated::Allowed && self.scope.kind(&label.name) == Some(&label.kind);
        if !recheck_after {
            self.place(at, |scope| scope.unused(&label.name))?;
            self.scope.add(label.clone());
        }
        let mut conditions = Vec::new();
        if self.cursor.takes("[") {
            if self.cursor.sees("]") {
                let message = format!("The given '{}' has no conditions", label.name);
                return Err(self.cursor.error(message));
            }
            while !self.cursor.takes("]") {
                conditions.push(self.existential(&label)?);
            }
        }
        Ok(Given { label, conditions })
    }

    fn label(&mut self) -> Result<Label, Error> {
        self.cursor.part()?;
        let name = self.cursor.identifier()?;
        self.cursor.expect(":")?;
        let kind = self.cursor.kind()?;
        Ok(Label { name, kind })
    }

    fn matches(&mut self) -> Result<Vec<Match>, Error> {
        self.cursor.open()?;
        let mut matches = Vec::new();
        while !self.cursor.closes() {
            matches.push(self.found()?);
        }
        Ok(matches)
    }

    fn found(&mut self) -> Result<Match, Error> {
        let at = self.cursor.at();
        let unknown = self.label()?;
        self.place(at, |scope| scope.unused(&unknown.name))?;
        self.cursor.expect("[")?;
        if self.cursor.sees("]") {
            let message = format!("The match for '{}' has no conditions", unknown.name);
            return Err(self.cursor.error(message));
        }
        let mut conditions = Vec::new();
        while !self.cursor.takes("]") {
            conditions.push(if self.cursor.sees_existential() {
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
        let at = self.cursor.at();
        self.cursor.part()?;
        let exists = !self.cursor.takes("!");
        self.cursor.expect_word("E")?;
        let matches = self.inside(Self::matches)?;
        self.place(at, |_| based_on(&matches, unknown))?;
        Ok(Existential { exists, matches })
    }

    fn path(&mut self, unknown: &Label) -> Result<Path, Error> {
        let at = self.cursor.at();
        self.cursor.part()?;
        if self.cursor.identifier()? != unknown.name {
            let message = format!(
                "The unknown '{}' must appear on the left side of the path",
                unknown.name
            );
            return Err(self.cursor.error_at(at, message));
        }
        let left = self.roles()?;
        self.cursor.expect("=")?;
        let right_label = self.known()?;
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
        while self.cursor.takes("->") {
            let Label { name, kind } = self.label()?;
            roles.push(Role { name, kind });
        }
        Ok(roles)
    }

    fn projection(&mut self) -> Result<Projection, Error> {
        if !self.cursor.takes("=>") {
            return Ok(Projection::empty());
        }
        if !self.cursor.sees("{") {
            return Ok(Projection::Single(self.single()?));
        }
        self.cursor.open()?;
        let mut components: Vec<(Name, Component)> = Vec::new();
        while !self.cursor.closes() {
            let at = self.cursor.at();
            self.cursor.part()?;
            let name = self.cursor.identifier()?;
            if components.iter().any(|(other, _)| *other == name) {
                return Err(self.cursor.error_at(at, used(&name)));
            }
            self.cursor.expect("=")?;
            let component = self.component()?;
            components.push((name, component));
        }
        Ok(Projection::Composite(components))
    }

    fn component(&mut self) -> Result<Component, Error> {
        if !self.cursor.sees("{") {
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

    fn single(&mut self) -> Result<Single, Error> {
        if self.cursor.takes("#") {
            return Ok(Single::Hash(self.known()?));
        }
        if self.cursor.takes("@") {
            return Ok(Single::Time(self.known()?));
        }
        let label = self.known()?;
        if self.cursor.takes(".") {
            let field = self.cursor.identifier()?;
            return Ok(Single::Field { label, field });
        }
        Ok(Single::Fact(label))
    }

    /// The name of a label in the scope.
    fn known(&mut self) -> Result<Name, Error> {
        let at = self.cursor.at();
        let name = self.cursor.identifier()?;
        self.place(at, |scope| scope.known(&name).map(drop))?;
        Ok(name)
    }

    fn inside<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let mark = self.scope.mark();
        let result = run(self);
        self.scope.forget(mark);
        result
    }

    /// What a check says, with the place it is said of.
    fn place(
        &self,
        at: usize,
        check: impl FnOnce(&Scope) -> Result<(), String>,
    ) -> Result<(), Error> {
        check(&self.scope).map_err(|message| self.cursor.error_at(at, message))
    }
}
