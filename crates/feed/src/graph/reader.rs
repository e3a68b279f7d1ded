//! Reads graphs, in the pieces that arrive.

mod lines;

use std::{borrow::Cow, mem, sync::Arc};

use self::lines::Lines;
use super::{Error, Limits, Problem};
use crate::{
    fact::{
        Envelope, Fact, InvalidFact, Kind, Kinds, Predecessors, Reference, Roles, Signature,
        role_name,
    },
    json::{self, Value},
    preview::preview,
};

/// Bytes of a public key's line. One of 8192 bits has less than 2,000.
const MAX_KEY: usize = 8_192;

/// Bytes of a signature's line. One of 8192 bits has less than 1,500.
const MAX_SIGNATURE: usize = 4_096;

const TYPE: &str = "a type as a JSON string, or PK and the number of a key";
const PREDECESSORS: &str = "an object of roles and indexes of facts";
const FIELDS: &str = "an object of fields";
const SIGNED: &str = "an empty line, or PK and the number of a key";
const SIGNATURE: &str = "a signature as a JSON string";
const KEY: &str = "a public key as a JSON string";
const KEY_END: &str = "an empty line after the public key";

/// Reads one graph. Lenient about line ends (CRLF too), blank lines between blocks, and the last
/// line's end. After an error it is of no more use.
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    lines: Lines,
    state: State,
    /// By index. Duplicates have an index of their own.
    facts: Vec<Reference>,
    keys: Vec<Arc<str>>,
    kinds: Kinds,
    predecessors: usize,
    signatures: usize,
}

/// What the next line is.
#[derive(Debug)]
enum State {
    Type,
    Predecessors(Kind),
    Fields(Kind, Roles),
    Signed(Envelope),
    Signature(Envelope, Arc<str>),
    Key,
    KeyEnd,
}

impl Reader {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            lines: Lines::new(limits.line),
            state: State::Type,
            facts: Vec::new(),
            keys: Vec::new(),
            kinds: Kinds::default(),
            predecessors: 0,
            signatures: 0,
        }
    }

    /// Takes the next bytes, cut anywhere, and appends the facts that are complete. Their hashes
    /// are computed here; their signatures are not checked.
    ///
    /// # Errors
    ///
    /// When they are no graph, or beyond a limit.
    pub fn push(&mut self, mut bytes: &[u8], read: &mut Vec<Envelope>) -> Result<(), Error> {
        let mut lines = mem::take(&mut self.lines);
        while let Some((number, line)) = lines.next(&mut bytes) {
            let done = line.and_then(|line| self.line(line, read));
            done.map_err(|problem| Error {
                line: number,
                problem,
            })?;
        }
        self.lines = lines;
        Ok(())
    }

    /// The body is at its end.
    ///
    /// # Errors
    ///
    /// When it ends in the middle of a block.
    pub fn finish(mut self, read: &mut Vec<Envelope>) -> Result<(), Error> {
        let mut lines = mem::take(&mut self.lines);
        let number = lines.number();
        let done = match lines.last() {
            Some(line) => self.line(line, read),
            None => Ok(()),
        };
        done.and_then(|()| self.end(read)).map_err(|problem| Error {
            line: number,
            problem,
        })
    }

    fn end(&mut self, read: &mut Vec<Envelope>) -> Result<(), Problem> {
        let expected = match mem::replace(&mut self.state, State::Type) {
            State::Type | State::KeyEnd => return Ok(()),
            State::Signed(envelope) => {
                read.push(envelope);
                return Ok(());
            }
            State::Predecessors(_) => PREDECESSORS,
            State::Fields(..) => FIELDS,
            State::Signature(..) => SIGNATURE,
            State::Key => KEY,
        };
        Err(Problem::Ends { expected })
    }

    fn line(&mut self, line: &[u8], read: &mut Vec<Envelope>) -> Result<(), Problem> {
        let blank = line.trim_ascii().is_empty();
        self.state = match mem::replace(&mut self.state, State::Type) {
            State::Type if blank => State::Type,
            State::Type => match key_index(line) {
                Some(index) => self.key_begins(index)?,
                None => State::Predecessors(self.kind(line)?),
            },
            State::Predecessors(kind) => State::Fields(kind, self.roles(line)?),
            State::Fields(kind, roles) => State::Signed(self.fact(kind, roles, line)?),
            State::Signed(envelope) if blank => {
                read.push(envelope);
                State::Type
            }
            State::Signed(envelope) => {
                let index = key_index(line).ok_or_else(|| unexpected(SIGNED, line))?;
                let key = usize::try_from(index).ok().and_then(|at| self.keys.get(at));
                let key = key.ok_or(Problem::NoKey {
                    index,
                    known: self.keys.len(),
                })?;
                State::Signature(envelope, key.clone())
            }
            State::Signature(mut envelope, key) => {
                let signature = self.signature(line)?;
                envelope.signatures.push(Signature { key, signature });
                State::Signed(envelope)
            }
            State::Key => {
                let key = string(line, KEY, MAX_KEY)?;
                self.keys.push(key.into());
                State::KeyEnd
            }
            State::KeyEnd if blank => State::Type,
            State::KeyEnd => return Err(unexpected(KEY_END, line)),
        };
        Ok(())
    }

    fn kind(&mut self, line: &[u8]) -> Result<Kind, Problem> {
        if self.facts.len() == self.limits.facts {
            return Err(many("facts", self.limits.facts));
        }
        let name = string(line, TYPE, self.limits.line)?;
        self.kinds.get(&name).map_err(expected(TYPE))
    }

    fn roles(&mut self, line: &[u8]) -> Result<Roles, Problem> {
        let Value::Object(object) = json::parse_bytes(line).map_err(expected(PREDECESSORS))? else {
            return Err(unexpected(PREDECESSORS, line));
        };
        let mut roles = Roles::with_capacity(object.members().len());
        for (name, value) in object.members() {
            let role = role_name(name).map_err(expected(PREDECESSORS))?;
            let predecessors = match value {
                Value::Array(indexes) => {
                    self.count(indexes.len())?;
                    let each = indexes.iter().map(|index| self.predecessor(role, index));
                    Predecessors::Many(each.collect::<Result<_, _>>()?)
                }
                index => {
                    self.count(1)?;
                    Predecessors::One(self.predecessor(role, index)?)
                }
            };
            roles.push((role.into(), predecessors));
        }
        Ok(roles)
    }

    /// Before they are made, for what they take.
    fn count(&mut self, predecessors: usize) -> Result<(), Problem> {
        self.predecessors += predecessors;
        if self.predecessors > self.limits.predecessors {
            return Err(many("predecessors", self.limits.predecessors));
        }
        Ok(())
    }

    fn predecessor(&self, role: &str, index: &Value<'_>) -> Result<Reference, Problem> {
        let Value::Number(number) = *index else {
            return Err(Problem::NoIndex { role: role.into() });
        };
        if number < 0.0 || number.fract() != 0.0 {
            return Err(Problem::NoIndex { role: role.into() });
        }
        // Saturates, which is out of range too.
        let index = number as u64;
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        self.facts
            .get(at)
            .cloned()
            .ok_or_else(|| Problem::NotBefore {
                role: role.into(),
                index,
                known: self.facts.len(),
            })
    }

    fn fact(&mut self, kind: Kind, roles: Roles, line: &[u8]) -> Result<Envelope, Problem> {
        let fields = json::parse_bytes(line).map_err(expected(FIELDS))?;
        let fact = Fact::new(kind, roles, &fields).map_err(expected(FIELDS))?;
        self.facts.push(fact.reference.clone());
        Ok(Envelope::unsigned(fact))
    }

    fn signature(&mut self, line: &[u8]) -> Result<Box<str>, Problem> {
        if self.signatures == self.limits.signatures {
            return Err(many("signatures", self.limits.signatures));
        }
        self.signatures += 1;
        Ok(string(line, SIGNATURE, MAX_SIGNATURE)?.into())
    }

    fn key_begins(&self, found: u64) -> Result<State, Problem> {
        let expected = self.keys.len();
        if expected == self.limits.keys {
            return Err(many("public keys", self.limits.keys));
        }
        if found != expected as u64 {
            return Err(Problem::KeyOrder { expected, found });
        }
        Ok(State::Key)
    }
}

/// The number of `PK0`.
fn key_index(line: &[u8]) -> Option<u64> {
    let digits = line.trim_ascii_end().strip_prefix(b"PK")?;
    let only_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok()?;
    only_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

fn string<'a>(line: &'a [u8], what: &'static str, limit: usize) -> Result<Cow<'a, str>, Problem> {
    if line.len() > limit {
        return Err(Problem::Long { limit });
    }
    match json::parse_bytes(line).map_err(expected(what))? {
        Value::String(text) => text
            .into_str()
            .ok_or_else(|| expected(what)(InvalidFact::Surrogate { what: "string" })),
        _ => Err(unexpected(what, line)),
    }
}

fn expected<E: Into<InvalidFact>>(expected: &'static str) -> impl FnOnce(E) -> Problem {
    move |unfit| Problem::Line {
        expected,
        unfit: unfit.into(),
    }
}

fn unexpected(expected: &'static str, line: &[u8]) -> Problem {
    const SHOWN: usize = 40;
    let found = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN)]);
    Problem::Unexpected {
        expected,
        found: preview(&found, SHOWN).into(),
    }
}

fn many(what: &'static str, limit: usize) -> Problem {
    Problem::Many { what, limit }
}
