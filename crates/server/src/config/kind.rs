//! The kinds of values that settings take: how they are parsed, and how a mistake describes them.

use std::path::PathBuf;

use toml::de::DeValue;

use super::listen::Listen;
use super::secret::mask_unknown;
use super::units::{parse_duration, parse_size, show_duration, show_size};
use super::value::Value;
use crate::logs::parse_level;

/// A kind of values.
#[derive(Debug)]
pub enum Kind {
    Bool,
    Integer {
        min: u64,
        max: u64,
    },
    /// A size with a unit.
    Bytes {
        min: u64,
        max: u64,
    },
    /// A duration with a unit; the bounds are milliseconds.
    Duration {
        min: u64,
        max: u64,
    },
    /// An IP address or a name, and a port.
    Listen,
    /// A URL with one of the schemes, or the word that stands for having none.
    Url {
        word: &'static str,
        schemes: &'static [&'static str],
    },
    /// Texts of visible ASCII characters; outside the file, separated by commas.
    List {
        min_chars: usize,
    },
    Path,
    Choice(&'static [&'static str]),
    /// A name that needs no quoting in PostgreSQL or Redis.
    Name {
        max_chars: usize,
    },
    /// Which log lines are written.
    LogLevel,
    /// Any text; the empty one stands for having none, where that is possible.
    Text {
        min_chars: usize,
        optional: bool,
    },
}

pub(super) const fn integer(min: u64, max: u64) -> Kind {
    Kind::Integer { min, max }
}

pub(super) const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Bytes { min, max }
}

pub(super) const fn duration(min: u64, max: u64) -> Kind {
    Kind::Duration { min, max }
}

pub(super) const fn text(min_chars: usize) -> Kind {
    Kind::Text {
        min_chars,
        optional: false,
    }
}

pub(super) const fn optional_text(min_chars: usize) -> Kind {
    Kind::Text {
        min_chars,
        optional: true,
    }
}

/// A value that does not fit, for a mistake's text.
pub(super) enum WrongValue {
    /// The value itself, which may be shown unless the setting is secret.
    Value(String),
    /// A description that gives nothing away.
    Described(String),
}

impl Kind {
    /// Reads a text from the environment, a flag, or the table's default.
    pub(super) fn read_text(&self, text: &str) -> Result<Value, WrongValue> {
        match self {
            Self::Bool => text.parse().ok().map(Value::Bool),
            Self::Integer { .. } => text.parse().ok().and_then(|number| self.bounded(number)),
            Self::Bytes { .. } => parse_size(text).and_then(|number| self.bounded(number)),
            Self::Duration { .. } => parse_duration(text).and_then(|number| self.bounded(number)),
            Self::Listen => Listen::parse(text).map(Value::Listen),
            Self::Path => (!text.is_empty()).then(|| Value::Path(PathBuf::from(text))),
            Self::Choice(choices) => choices
                .contains(&text)
                .then(|| Value::Text(text.to_owned())),
            Self::Name { max_chars } => {
                is_name(text, *max_chars).then(|| Value::Text(text.to_owned()))
            }
            Self::LogLevel => parse_level(text).map(|_| Value::Text(text.to_owned())),
            Self::Text {
                min_chars,
                optional,
            } => {
                let chars = text.chars().count();
                if chars < *min_chars && !(*optional && chars == 0) {
                    return Err(WrongValue::Described(format!("a length of {chars}")));
                }
                Some(Value::Text(text.to_owned()))
            }
            Self::Url { word, schemes } => {
                if text != *word && !is_url(text, schemes) {
                    return Err(WrongValue::Described(quoted(&mask_unknown(text))));
                }
                Some(Value::Url(text.to_owned()))
            }
            Self::List { min_chars } => {
                let items = text.split(',').map(str::trim);
                let items = items.filter(|item| !item.is_empty());
                return read_list(items.map(|item| Ok(item.to_owned())), *min_chars);
            }
        }
        .ok_or_else(|| WrongValue::Value(quoted(text)))
    }

    /// Reads a value of the file, which has types of its own: `5` and `"5"` are not the same.
    pub(super) fn read_toml(&self, value: &DeValue<'_>) -> Result<Value, WrongValue> {
        match (self, value) {
            (Self::Bool, DeValue::Boolean(value)) => Ok(Value::Bool(*value)),
            (Self::Integer { .. } | Self::Bytes { .. }, DeValue::Integer(number)) => {
                u64::from_str_radix(number.as_str(), number.radix())
                    .ok()
                    .and_then(|number| self.bounded(number))
                    .ok_or_else(|| WrongValue::Value(number.to_string()))
            }
            (Self::List { min_chars }, DeValue::Array(items)) => {
                let items = items.iter().map(|item| match item.get_ref() {
                    DeValue::String(text) => Ok(text.clone().into_owned()),
                    other => Err(article(other.type_str())),
                });
                read_list(items, *min_chars)
            }
            (Self::List { .. }, DeValue::String(_)) => Err(WrongValue::Described(
                "a text instead of an array".to_owned(),
            )),
            (Self::Bool | Self::Integer { .. }, DeValue::String(text)) => {
                Err(WrongValue::Value(format!("the text {}", quoted(text))))
            }
            (_, DeValue::String(text)) => self.read_text(text),
            (_, DeValue::Integer(number)) => {
                Err(WrongValue::Value(format!("the integer {number}")))
            }
            (_, DeValue::Float(number)) => Err(WrongValue::Value(format!("the float {number}"))),
            (_, DeValue::Boolean(value)) => Err(WrongValue::Value(format!("the boolean {value}"))),
            (_, other) => Err(WrongValue::Described(article(other.type_str()))),
        }
    }

    fn bounded(&self, number: u64) -> Option<Value> {
        let (min, max, value) = match self {
            Self::Integer { min, max } => (min, max, Value::Integer(number)),
            Self::Bytes { min, max } => (min, max, Value::Bytes(number)),
            Self::Duration { min, max } => (min, max, Value::Milliseconds(number)),
            _ => return None,
        };
        (*min..=*max).contains(&number).then_some(value)
    }

    /// What fits, as a mistake says it after "expected".
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Bytes { min, max } => format!(
                "a size such as 10MiB, from {} to {}",
                show_size(*min),
                show_size(*max)
            ),
            Self::Duration { min, max } => format!(
                "a duration such as 30s or 500ms, from {} to {}",
                show_duration(*min),
                show_duration(*max)
            ),
            Self::Listen => "an IP address or a name, and a port, such as 127.0.0.1:6632, \
                             [::1]:6632 or localhost:6632"
                .to_owned(),
            Self::Url { word, schemes } => {
                let schemes = schemes.map_join(" or ", |scheme| format!("{scheme}://…"));
                let word = if word.is_empty() { "nothing" } else { word };
                format!("{word}, or a URL {schemes}")
            }
            Self::List { min_chars } => {
                format!("a list of texts of {min_chars} or more visible ASCII characters each")
            }
            Self::Path => "a path".to_owned(),
            Self::Choice(choices) => choices.map_join(" or ", |choice| (*choice).to_owned()),
            Self::Name { max_chars } => {
                format!("1 to {max_chars} of the characters a-z A-Z 0-9 _ - . :")
            }
            Self::LogLevel => {
                "a level (error, warn, info, debug, trace, off) or directives such as info,wakeline_wake=debug".to_owned()
            }
            Self::Text {
                min_chars,
                optional,
            } => {
                let nothing = if *optional { "nothing, or " } else { "" };
                let length = match min_chars {
                    0 | 1 => String::new(),
                    min => format!(" of {min} or more characters"),
                };
                format!("{nothing}a text{length}")
            }
        }
    }
}

trait MapJoin {
    fn map_join(&self, separator: &str, show: impl Fn(&&str) -> String) -> String;
}

impl MapJoin for [&'static str] {
    fn map_join(&self, separator: &str, show: impl Fn(&&str) -> String) -> String {
        self.iter().map(show).collect::<Vec<_>>().join(separator)
    }
}

/// Items are counted, never shown: lists hold secrets.
fn read_list(
    items: impl Iterator<Item = Result<String, String>>,
    min_chars: usize,
) -> Result<Value, WrongValue> {
    let mut list = Vec::new();
    let mut wrong = Vec::new();
    for (number, item) in (1..).zip(items) {
        match item {
            Err(kind) => wrong.push(format!("{kind} as item {number}")),
            Ok(item) if !item.chars().all(|c| c.is_ascii_graphic()) => wrong.push(format!(
                "a character other than visible ASCII in item {number}"
            )),
            Ok(item) if item.len() < min_chars => {
                wrong.push(format!("a length of {} in item {number}", item.len()));
            }
            Ok(item) => list.push(item),
        }
    }
    if wrong.is_empty() {
        Ok(Value::List(list))
    } else {
        Err(WrongValue::Described(wrong.join(" and ")))
    }
}

fn is_name(text: &str, max_chars: usize) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    (1..=max_chars).contains(&text.len()) && text.chars().all(allowed)
}

/// The databases' clients parse URLs themselves; this keeps out what is none.
fn is_url(text: &str, schemes: &[&str]) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    schemes.contains(&scheme)
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'i']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {noun}")
}

/// Longest value that a mistake quotes.
const MAX_SHOWN: usize = 80;

fn quoted(text: &str) -> String {
    if text.chars().count() <= MAX_SHOWN {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(MAX_SHOWN).collect();
    format!("{start:?}…")
}
