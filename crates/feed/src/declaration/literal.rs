//! The values of fields.

use crate::{
    declaration::Literal,
    specification::scanner::{Error, Scanner},
};

/// The literal at the scanner; `None` if there is a name, or something else.
pub(super) fn take(scanner: &mut Scanner<'_>) -> Result<Option<Literal>, Error> {
    let words = [
        ("null", Literal::Null),
        ("true", Literal::Bool(true)),
        ("false", Literal::Bool(false)),
    ];
    for (word, literal) in words {
        if scanner.takes_word(word) {
            return Ok(Some(literal));
        }
    }
    if scanner.sees("\"") {
        return string(scanner).map(Some);
    }
    let digits = |c: char| c.is_ascii_digit() || c == '+' || c == '-';
    if scanner.rest().starts_with(digits) {
        return number(scanner).map(Some);
    }
    Ok(None)
}

/// As in JSON, and with a plus sign before it if one likes.
fn number(scanner: &mut Scanner<'_>) -> Result<Literal, Error> {
    let rest = scanner.rest();
    let length = number_length(rest).ok_or_else(|| scanner.expected("a number"))?;
    let value = rest[..length].parse().ok().filter(|n: &f64| n.is_finite());
    let value = value.ok_or_else(|| scanner.expected("a number of at most 64 bits"))?;
    scanner.take(length);
    Ok(Literal::Number(value))
}

fn number_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut at = usize::from(text.starts_with(['+', '-']));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && bytes[at] == b'0') {
        return None;
    }
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

fn string(scanner: &mut Scanner<'_>) -> Result<Literal, Error> {
    let text = scanner.rest();
    let length = string_length(text).ok_or_else(|| scanner.expected("a JSON string"))?;
    scanner.take(length);
    Ok(Literal::String(text[..length].into()))
}

/// With its quotes; `None` if it does not end or is not JSON.
fn string_length(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some(at + 1),
            '\0'..='\u{1f}' => return None,
            '\\' => match chars.next()?.1 {
                '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => {}
                'u' => {
                    for _ in 0..4 {
                        chars.next().filter(|(_, c)| c.is_ascii_hexdigit())?;
                    }
                }
                _ => return None,
            },
            _ => {}
        }
    }
    None
}
