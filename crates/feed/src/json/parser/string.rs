//! Strings: lent where nothing is escaped, copied otherwise.

use super::Parser;
use crate::json::{Error, Problem, Text};

impl<'a> Parser<'a> {
    /// Stands at the opening quote.
    pub(super) fn string(&mut self) -> Result<Text<'a>, Error> {
        self.at += 1;
        let plain = self.plain()?;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Text::from(plain));
        }
        self.escaped(plain)
    }

    /// Up to the next quote or backslash.
    fn plain(&mut self) -> Result<&'a str, Error> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1F);
        self.at += rest.iter().position(special).unwrap_or(rest.len());
        match self.peek() {
            Some(b'"' | b'\\') => Ok(&self.text[start..self.at]),
            Some(_) => Err(self.error(Problem::Control)),
            None => Err(self.error(Problem::Ends("a double quote"))),
        }
    }

    fn escaped(&mut self, plain: &str) -> Result<Text<'a>, Error> {
        let mut text = plain.to_owned();
        while self.peek() == Some(b'\\') {
            match self.escape()? {
                Unit::Char(char) => text.push(char),
                Unit::Lone(unit) => return self.wide(&text, unit),
            }
            text.push_str(self.plain()?);
        }
        self.at += 1;
        Ok(Text::from(text))
    }

    /// From the first lone surrogate on the string is kept as code units.
    fn wide(&mut self, text: &str, unit: u16) -> Result<Text<'a>, Error> {
        let mut units: Vec<u16> = text.encode_utf16().collect();
        units.push(unit);
        units.extend(self.plain()?.encode_utf16());
        while self.peek() == Some(b'\\') {
            match self.escape()? {
                Unit::Char(char) => units.extend_from_slice(char.encode_utf16(&mut [0; 2])),
                Unit::Lone(unit) => units.push(unit),
            }
            units.extend(self.plain()?.encode_utf16());
        }
        self.at += 1;
        Ok(Text::from_units(units))
    }

    /// Stands at the backslash.
    fn escape(&mut self) -> Result<Unit, Error> {
        self.at += 1;
        let char = match self.peek() {
            Some(b'u') => return self.unicode(),
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(_) => return Err(self.error(Problem::Escape)),
            None => return Err(self.error(Problem::Ends("an escape"))),
        };
        self.at += 1;
        Ok(Unit::Char(char))
    }

    /// Stands at the `u`. A surrogate takes its other half with it, if that follows.
    fn unicode(&mut self) -> Result<Unit, Error> {
        self.at += 1;
        let unit = self.hex()?;
        if let Some(char) = char::from_u32(unit.into()) {
            return Ok(Unit::Char(char));
        }
        if unit < 0xDC00 && self.bytes[self.at..].starts_with(b"\\u") {
            let back = self.at;
            self.at += 2;
            let low = self.hex()?;
            if let Some(Ok(char)) = char::decode_utf16([unit, low]).next() {
                return Ok(Unit::Char(char));
            }
            self.at = back;
        }
        Ok(Unit::Lone(unit))
    }

    fn hex(&mut self) -> Result<u16, Error> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.expected("four hexadecimal digits"));
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }
}

enum Unit {
    Char(char),
    /// Half of a surrogate pair.
    Lone(u16),
}
