//! A JavaScript string.

use std::{borrow::Cow, cmp::Ordering, fmt};

/// A string of UTF-16 code units, which need not be Unicode.
#[derive(Clone, PartialEq, Eq)]
pub struct Text<'a>(Units<'a>);

/// `Wide` only if there is a lone surrogate, so that equal texts have one form.
#[derive(Clone, PartialEq, Eq)]
enum Units<'a> {
    Unicode(Cow<'a, str>),
    Wide(Box<[u16]>),
}

impl<'a> Text<'a> {
    #[must_use]
    pub fn from_units(units: Vec<u16>) -> Self {
        Self(match String::from_utf16(&units) {
            Ok(text) => Units::Unicode(Cow::Owned(text)),
            Err(_) => Units::Wide(units.into()),
        })
    }

    /// `None` if there is a lone surrogate.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Units::Unicode(text) => Some(text),
            Units::Wide(_) => None,
        }
    }

    /// `None` if there is a lone surrogate.
    #[must_use]
    pub fn into_str(self) -> Option<Cow<'a, str>> {
        match self.0 {
            Units::Unicode(text) => Some(text),
            Units::Wide(_) => None,
        }
    }

    /// The code units of a text that has lone surrogates.
    #[must_use]
    pub fn as_wide(&self) -> Option<&[u16]> {
        match &self.0 {
            Units::Unicode(_) => None,
            Units::Wide(units) => Some(units),
        }
    }

    /// With U+FFFD in the place of lone surrogates.
    #[must_use]
    pub fn to_lossy(&self) -> Cow<'_, str> {
        match &self.0 {
            Units::Unicode(text) => Cow::Borrowed(text),
            Units::Wide(units) => Cow::Owned(String::from_utf16_lossy(units)),
        }
    }

    /// As JavaScript's `<`.
    #[must_use]
    pub fn compare(&self, other: &str) -> Ordering {
        match &self.0 {
            Units::Unicode(text) => compare(text, other),
            Units::Wide(units) => units.iter().copied().cmp(other.encode_utf16()),
        }
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Units::Unicode(Cow::Borrowed(text)))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Units::Unicode(Cow::Owned(text)))
    }
}

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (_, Units::Unicode(other)) => self.compare(other),
            (Units::Unicode(text), Units::Wide(_)) => other.compare(text).reverse(),
            (Units::Wide(one), Units::Wide(other)) => one.cmp(other),
        }
    }
}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        super::writer::write_text(&mut text, self);
        out.write_str(&text)
    }
}

/// The order of two strings in JavaScript: by UTF-16 code units. It is that of the bytes, except
/// that what needs two units (U+10000 and up) comes before U+E000 to U+FFFF.
#[must_use]
pub fn compare(one: &str, other: &str) -> Ordering {
    let (a, b) = (one.as_bytes(), other.as_bytes());
    match a.iter().zip(b).find(|(a, b)| a != b) {
        None => a.len().cmp(&b.len()),
        Some((&a, &b)) if a >= 0xEE && b >= 0xEE && (a >= 0xF0) != (b >= 0xF0) => b.cmp(&a),
        Some((a, b)) => a.cmp(b),
    }
}
