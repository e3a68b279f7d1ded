//! Query and path parameters, with the parameter named in every refusal.

use std::{ops::RangeInclusive, str::FromStr};

use axum::{
    extract::{FromRequestParts, Path, rejection::PathRejection},
    http::request::Parts,
};

use crate::problem::Problem;

/// The query of a request. The server refuses parameters that the route does not have.
#[derive(Clone, Debug, Default)]
pub struct Params(Vec<(String, String)>);

impl Params {
    pub fn parse(query: &str) -> Result<Self, Problem> {
        let pairs = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                let name =
                    decode(name).ok_or_else(|| Problem::invalid("query", "a name is not UTF-8"))?;
                let value = decode(value)
                    .ok_or_else(|| Problem::invalid(&name, "the value is not UTF-8"))?;
                Ok((name, value))
            })
            .collect::<Result<_, Problem>>()?;
        Ok(Self(pairs))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The last value of `name`; empty for a bare name.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        match self.text(name) {
            None => Ok(None),
            Some("true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(other) => Err(Problem::invalid(
                name,
                format!("{} is neither true nor false", quote(other)),
            )),
        }
    }

    pub fn number<N: FromStr + PartialOrd + std::fmt::Display>(
        &self,
        name: &str,
        range: &RangeInclusive<N>,
    ) -> Result<Option<N>, Problem> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(Problem::invalid(
                name,
                format!(
                    "{} is not a whole number from {} to {}",
                    quote(text),
                    range.start(),
                    range.end()
                ),
            )),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

/// Percent-decoding, and `+` for a blank. `None` when the result is not UTF-8: replaced characters
/// would silently name something else.
fn decode(text: &str) -> Option<String> {
    String::from_utf8(percent_decoded(text.replace('+', " ").as_bytes())).ok()
}

/// Replaces each `%xx` by its byte.
#[must_use]
pub fn percent_decoded(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let pair = tail
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        let byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match byte {
            Some(byte) if *first == b'%' => {
                decoded.push(byte);
                rest = &tail[2..];
            }
            _ => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    decoded
}

/// A value in a refusal: quoted and cut.
fn quote(text: &str) -> String {
    const SHOWN: usize = 40;
    let short: String = text.chars().take(SHOWN).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", short.escape_debug())
}

/// The path's parameters, or a [`Problem`].
pub fn path<T>(extracted: Result<Path<T>, PathRejection>) -> Result<T, Problem> {
    extracted
        .map(|Path(value)| value)
        .map_err(|rejection| Problem::invalid("path", rejection.body_text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_decoded() {
        let params = Params::parse("consumerGroup=a+b%2Fc&wait=1&x").unwrap();
        assert_eq!(params.text("consumerGroup"), Some("a b/c"));
        assert_eq!(params.flag("wait"), Ok(Some(true)));
        assert_eq!(params.text("x"), Some(""));
        assert_eq!(
            Params::parse("x=100%25&y=%zz").unwrap().text("x"),
            Some("100%")
        );
    }

    #[test]
    fn a_refusal_names_the_parameter_and_the_value_found() {
        let params = Params::parse("batch=99999999999999999999&wait=maybe").unwrap();
        let number = params.number::<u32>("batch", &(1..=10)).unwrap_err();
        let flag = params.flag("wait").unwrap_err();
        let utf8 = Params::parse("group=%ff").unwrap_err();
        let texts = [number, flag, utf8].map(|problem| problem.detail().to_owned());
        insta::assert_json_snapshot!(texts, @r#"
        [
          "batch: \"99999999999999999999\" is not a whole number from 1 to 10",
          "wait: \"maybe\" is neither true nor false",
          "group: the value is not UTF-8"
        ]
        "#);
    }
}
