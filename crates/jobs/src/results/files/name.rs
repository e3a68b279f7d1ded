//! The name of an answer's file.

use std::fmt;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::provider::AnswerKey;

/// Made of ids of the server and of a checksum: it contains no text of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileName {
    pub(super) provider: Uuid,
    pub(super) version: i64,
    sum: [u8; 32],
}

impl FileName {
    pub(super) fn of(key: &AnswerKey) -> Self {
        Self {
            provider: key.provider,
            version: key.version,
            sum: Sha256::digest(&key.hash).into(),
        }
    }

    /// `None` for every name that is not exactly one of these.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let name = Self {
            provider: parts.next()?.parse().ok()?,
            version: parts.next()?.parse().ok()?,
            sum: sum(parts.next()?)?,
        };
        (name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.", self.provider.simple(), self.version)?;
        self.sum
            .iter()
            .try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

fn sum(text: &str) -> Option<[u8; 32]> {
    let mut sum = [0; 32];
    for (at, byte) in sum.iter_mut().enumerate() {
        let digits = text.get(2 * at..2 * at + 2)?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(hash: &str) -> FileName {
        FileName::of(&AnswerKey {
            provider: Uuid::from_u128(7),
            version: 3,
            hash: hash.to_owned(),
        })
    }

    #[test]
    fn a_file_name_is_parsed_as_it_was_written() {
        let text = name("a").to_string();
        insta::assert_snapshot!(text, @"00000000000000000000000000000007.3.ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
        assert_eq!(FileName::parse(&text), Some(name("a")));
    }

    #[test]
    fn other_names_are_not_parsed() {
        let text = name("a").to_string();
        for other in [
            "",
            "notes.txt",
            &text.to_uppercase(),
            &format!("{text}0"),
            &format!("{text}.bak"),
            &text.replace(".3.", ".+3."),
            &text.replace(".3.", ".03."),
        ] {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
    }
}
