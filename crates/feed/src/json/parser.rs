//! Reads JSON, as strict as `JSON.parse`.

mod string;

use super::{Error, Object, Problem, Text, Value};

/// What one document may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub bytes: usize,
    /// How deep arrays and objects may be nested. The reader is recursive: keep it in the hundreds.
    pub depth: usize,
    /// A value takes more memory than the two bytes of `0,`.
    pub values: usize,
}

impl Limits {
    pub const DEFAULT: Self = Self {
        bytes: 64 << 20,
        depth: 64,
        values: 1_000_000,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// # Errors
///
/// When it is not JSON or is beyond [`Limits::DEFAULT`].
pub fn parse(text: &str) -> Result<Value<'_>, Error> {
    parse_within(text, Limits::DEFAULT)
}

/// # Errors
///
/// When it is not UTF-8, not JSON or is beyond [`Limits::DEFAULT`].
pub fn parse_bytes(bytes: &[u8]) -> Result<Value<'_>, Error> {
    parse(utf8(bytes)?)
}

/// # Errors
///
/// When it is not JSON or is beyond the limits.
pub fn parse_within(text: &str, limits: Limits) -> Result<Value<'_>, Error> {
    let mut parser = Parser::new(text, limits)?;
    let value = parser.value()?;
    parser.end()?;
    Ok(value)
}

pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|error| Error {
        problem: Problem::Encoding,
        at: error.valid_up_to(),
    })
}

/// Reads a document piece by piece, for lists that are not to be held as values.
#[derive(Debug)]
pub struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    limits: Limits,
    /// How many arrays and objects are open.
    depth: usize,
    /// How many more values may come.
    values: usize,
}

impl<'a> Parser<'a> {
    /// # Errors
    ///
    /// When the text is too long.
    pub fn new(text: &'a str, limits: Limits) -> Result<Self, Error> {
        if text.len() > limits.bytes {
            return Err(Error {
                problem: Problem::Long(limits.bytes),
                at: limits.bytes,
            });
        }
        Ok(Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            limits,
            depth: 0,
            values: limits.values,
        })
    }

    /// Reads `[` and each element by `element`, which must read just one value. The limit on values
    /// counts for each element by itself.
    ///
    /// # Errors
    ///
    /// The element's, or when this is no array.
    pub fn elements<E: From<Error>>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[', "an array")?;
        if !self.closes(b']') {
            loop {
                self.values = self.limits.values;
                element(self)?;
                if !self.goes_on(b']', "',' or ']'")? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads `{` and each member's value by `member`, which must read just one value.
    ///
    /// # Errors
    ///
    /// The member's, or when this is no object.
    pub fn members<E: From<Error>>(
        &mut self,
        mut member: impl FnMut(&mut Self, Text<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{', "an object")?;
        if !self.closes(b'}') {
            loop {
                self.space();
                if self.peek() != Some(b'"') {
                    return Err(self.expected("a key in double quotes").into());
                }
                let key = self.string()?;
                self.space();
                if self.peek() != Some(b':') {
                    return Err(self.expected("':'").into());
                }
                self.at += 1;
                member(self, key)?;
                if !self.goes_on(b'}', "',' or '}'")? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// # Errors
    ///
    /// When there is no value here.
    pub fn value(&mut self) -> Result<Value<'a>, Error> {
        self.space();
        match self.values.checked_sub(1) {
            Some(left) => self.values = left,
            None => return Err(self.error(Problem::Many(self.limits.values))),
        }
        match self.peek() {
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => Err(self.expected("a JSON value")),
        }
    }

    /// # Errors
    ///
    /// When there is more than white space left.
    pub fn end(&mut self) -> Result<(), Error> {
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error(Problem::Trailing)),
        }
    }

    fn object(&mut self) -> Result<Value<'a>, Error> {
        let mut members = Vec::new();
        self.members(|parser, key| {
            members.push((key, parser.value()?));
            Ok::<_, Error>(())
        })?;
        Ok(Value::Object(Object::new(members)))
    }

    fn array(&mut self) -> Result<Value<'a>, Error> {
        self.open(b'[', "an array")?;
        let mut elements = Vec::new();
        if !self.closes(b']') {
            loop {
                elements.push(self.value()?);
                if !self.goes_on(b']', "',' or ']'")? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(Value::Array(elements))
    }

    fn word(&mut self, word: &'static str, value: Value<'a>) -> Result<Value<'a>, Error> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("a JSON value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Value<'a>, Error> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let integer = self.at;
        self.digits()?;
        if self.bytes[integer] == b'0' && self.at > integer + 1 {
            self.at = integer + 1;
            return Err(self.expected("no digit after a leading 0"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let number: Result<f64, _> = self.text[start..self.at].parse();
        match number {
            Ok(number) if number.is_finite() => Ok(Value::Number(number)),
            _ => Err(Error {
                problem: Problem::Huge,
                at: start,
            }),
        }
    }

    fn digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.expected("a digit"));
        }
        Ok(())
    }

    fn open(&mut self, bracket: u8, what: &'static str) -> Result<(), Error> {
        self.space();
        if self.peek() != Some(bracket) {
            return Err(self.expected(what));
        }
        if self.depth == self.limits.depth {
            return Err(self.error(Problem::Deep(self.limits.depth)));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    fn closes(&mut self, bracket: u8) -> bool {
        self.space();
        let closes = self.peek() == Some(bracket);
        if closes {
            self.at += 1;
        }
        closes
    }

    fn goes_on(&mut self, bracket: u8, what: &'static str) -> Result<bool, Error> {
        self.space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == bracket => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.expected(what)),
        }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expected(&self, what: &'static str) -> Error {
        self.error(match self.peek() {
            Some(_) => Problem::Expected(what),
            None => Problem::Ends(what),
        })
    }

    fn error(&self, problem: Problem) -> Error {
        Error {
            problem,
            at: self.at,
        }
    }
}
