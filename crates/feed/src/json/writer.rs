//! Writes JSON as `JSON.stringify` does, with sorted keys.

use std::fmt::Write as _;

use super::{Text, Value};

impl Value<'_> {
    /// Appends the canonical text.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(true) => out.push_str("true"),
            Self::Bool(false) => out.push_str("false"),
            Self::Number(number) => write_number(out, *number),
            Self::String(text) => write_text(out, text),
            Self::Array(elements) => {
                out.push('[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(object) => {
                out.push('{');
                for (index, (key, value)) in object.members().iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_text(out, key);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// As ECMAScript's `Number::toString`; what is not finite is `null`, as in `JSON.stringify`.
pub fn write_number(out: &mut String, number: f64) {
    if number.is_finite() {
        out.push_str(ryu_js::Buffer::new().format_finite(number));
    } else {
        out.push_str("null");
    }
}

pub(super) fn write_text(out: &mut String, text: &Text<'_>) {
    match text.as_str() {
        Some(text) => write_string(out, text),
        None => write_wide(out, text.as_wide().unwrap_or_default()),
    }
}

/// A string in its quotes, escaped as `JSON.stringify` does.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[written..at]);
        write_escape(out, byte);
        written = at + 1;
    }
    out.push_str(&text[written..]);
    out.push('"');
}

fn write_escape(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        0x8 => out.push_str("\\b"),
        0x9 => out.push_str("\\t"),
        0xA => out.push_str("\\n"),
        0xC => out.push_str("\\f"),
        0xD => out.push_str("\\r"),
        _ => write_unit(out, byte.into()),
    }
}

fn write_wide(out: &mut String, units: &[u16]) {
    out.push('"');
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(char @ ('"' | '\\' | '\0'..='\u{1F}')) => write_escape(out, char as u8),
            Ok(char) => out.push(char),
            Err(lone) => write_unit(out, lone.unpaired_surrogate()),
        }
    }
    out.push('"');
}

fn write_unit(out: &mut String, unit: u16) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\u{unit:04x}");
}
