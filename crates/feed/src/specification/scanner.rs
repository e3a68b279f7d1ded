//! Scans a text of the language, and says in errors where it is and what it expected there.

use std::sync::Arc;

use crate::{
    fact::{Kind, MAX_NAME},
    preview::preview,
    specification::Name,
};

/// Longer texts are refused before they are read.
pub const MAX_TEXT: usize = 1024 * 1024;
/// How many braces may be open at once.
pub const MAX_DEPTH: usize = 50;
/// Labels, steps, conditions and components of one specification. Each is a join, and each is
/// copied into the feeds it is in.
pub const MAX_PARTS: usize = 1_000;
/// How much of the text an error shows.
const PREVIEW: usize = 100;

/// The mistake in a text, and its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {line}, column {column})")]
pub struct Error {
    pub message: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// How many more the specification may have.
    parts: usize,
}

impl<'a> Scanner<'a> {
    /// At the first character that is not white space.
    pub fn new(text: &'a str) -> Result<Self, Error> {
        Self::of_length(text, MAX_TEXT)
    }

    pub(super) fn of_length(text: &'a str, max: usize) -> Result<Self, Error> {
        let mut scanner = Self {
            text,
            at: 0,
            depth: 0,
            parts: 0,
        };
        if text.len() > max {
            let message = format!("The text is longer than {max} bytes");
            return Err(scanner.error(message));
        }
        scanner.skip_space();
        Ok(scanner)
    }

    /// Where the scanner stands, for an error that is found out later.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    #[must_use]
    pub fn at_end(&self) -> bool {
        self.at == self.text.len()
    }

    pub fn expect_end(&self) -> Result<(), Error> {
        if self.at_end() {
            Ok(())
        } else {
            Err(self.expected("end of input"))
        }
    }

    #[must_use]
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    #[must_use]
    pub fn sees(&self, symbol: &str) -> bool {
        self.rest().starts_with(symbol)
    }

    pub fn takes(&mut self, symbol: &str) -> bool {
        let seen = self.sees(symbol);
        if seen {
            self.take(symbol.len());
        }
        seen
    }

    pub fn expect(&mut self, symbol: &str) -> Result<(), Error> {
        if self.takes(symbol) {
            Ok(())
        } else {
            Err(self.expected(&format!("'{symbol}'")))
        }
    }

    /// The whole word: `Every` does not start with the word `E`.
    #[must_use]
    pub fn sees_word(&self, word: &str) -> bool {
        self.rest()
            .strip_prefix(word)
            .is_some_and(|after| !after.starts_with(in_identifier))
    }

    pub fn takes_word(&mut self, word: &str) -> bool {
        let seen = self.sees_word(word);
        if seen {
            self.take(word.len());
        }
        seen
    }

    pub fn expect_word(&mut self, word: &str) -> Result<(), Error> {
        if self.takes_word(word) {
            Ok(())
        } else {
            Err(self.expected(&format!("'{word}'")))
        }
    }

    /// `E` is also a name: it is the quantifier only before a brace.
    #[must_use]
    pub fn sees_existential(&self) -> bool {
        self.sees("!")
            || (self.sees_word("E")
                && self.rest()[1..]
                    .trim_start_matches(is_space)
                    .starts_with('{'))
    }

    pub fn identifier(&mut self) -> Result<Name, Error> {
        self.name("identifier", in_identifier)
    }

    pub fn kind(&mut self) -> Result<Kind, Error> {
        self.name("type", |c| in_identifier(c) || c == '.')
    }

    fn name(&mut self, what: &str, within: impl Fn(char) -> bool) -> Result<Arc<str>, Error> {
        let at = self.at;
        if !self
            .rest()
            .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        {
            return Err(self.expected(what));
        }
        let name = self.take_while(within);
        if name.len() > MAX_NAME {
            let message = format!("The {what} is longer than {MAX_NAME} characters");
            return Err(self.error_at(at, message));
        }
        Ok(name.into())
    }

    pub fn take_while(&mut self, within: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !within(c)).unwrap_or(rest.len());
        self.take(length);
        &rest[..length]
    }

    /// Steps over so many bytes, which end at a character, and the white space after them.
    pub fn take(&mut self, bytes: usize) {
        self.at += bytes;
        self.skip_space();
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_space).len();
    }

    /// An opening brace. Nothing of the language nests without one.
    pub fn open(&mut self) -> Result<(), Error> {
        if self.depth == MAX_DEPTH && self.sees("{") {
            return Err(self.error(format!("More than {MAX_DEPTH} braces are open")));
        }
        self.expect("{")?;
        self.depth += 1;
        Ok(())
    }

    /// The closing brace, if it is there.
    pub fn closes(&mut self) -> bool {
        let closed = self.takes("}");
        if closed {
            self.depth -= 1;
        }
        closed
    }

    /// A specification of at most so many parts starts.
    pub(super) fn start_parts(&mut self, max: usize) {
        self.parts = max;
    }

    pub(super) fn part(&mut self) -> Result<(), Error> {
        let Some(left) = self.parts.checked_sub(1) else {
            return Err(self.error(format!("The specification has more than {MAX_PARTS} parts")));
        };
        self.parts = left;
        Ok(())
    }

    #[must_use]
    pub fn expected(&self, what: &str) -> Error {
        let found = preview(self.rest(), PREVIEW);
        self.error(format!("Expected {what} but found '{found}'"))
    }

    #[must_use]
    pub fn error(&self, message: String) -> Error {
        self.error_at(self.at, message)
    }

    #[must_use]
    pub fn error_at(&self, at: usize, message: String) -> Error {
        let before = &self.text[..at];
        let line = before.rsplit('\n').next().unwrap_or_default();
        Error {
            message,
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

fn in_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// As ECMAScript's `\s`.
fn is_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}
