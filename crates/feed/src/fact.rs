//! Facts: they are saved once and never change.

mod build;
mod invalid;
mod kinds;
mod predecessors;
pub mod record;

use std::{cmp::Ordering, fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha512};

pub use build::{MAX_FIELDS, MAX_PREDECESSORS};
pub use invalid::{InvalidFact, MAX_NAME, check_name, check_role};
pub use kinds::Kinds;
pub(crate) use predecessors::role_name;
pub use predecessors::{
    Roles, read_predecessors, read_reference_list, write_predecessors, write_reference_list,
};

/// SHA-512 of a fact's canonical JSON. Written as padded base64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 64]);

impl Hash {
    /// Reads the 88 characters of a hash.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha512::digest(text).into())
    }

    /// The order of their texts, which is not that of the bytes.
    #[must_use]
    pub fn compare_text(&self, other: &Self) -> Ordering {
        let Some(at) = (0..64).find(|&at| self.0[at] != other.0[at]) else {
            return Ordering::Equal;
        };
        // Three bytes are four characters: what differs is in the group of the first different
        // byte.
        let group = at / 3 * 3..(at / 3 * 3 + 3).min(64);
        STANDARD
            .encode(&self.0[group.clone()])
            .cmp(&STANDARD.encode(&other.0[group]))
    }

    /// Appends the 88 characters.
    pub fn write(&self, out: &mut String) {
        STANDARD.encode_string(self.0, out);
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A fact's type, such as `Blog.Post`.
pub type Kind = Arc<str>;

/// Which fact: its type is not part of the hash.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference {
    pub kind: Kind,
    pub hash: Hash,
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.kind, self.hash)
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The predecessors under a role. An array of one is not the same as one: the hash differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predecessors {
    One(Reference),
    /// Sorted by hash, then type; duplicates stay.
    Many(Vec<Reference>),
}

impl Predecessors {
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        match self {
            Self::One(reference) => std::slice::from_ref(reference),
            Self::Many(references) => references,
        }
    }
}

/// A fact whose hash is known to be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub reference: Reference,
    /// By role, in the order of their UTF-16 code units.
    pub predecessors: Roles,
    /// Canonical JSON of the object of fields.
    pub fields: Box<str>,
}

/// A signature of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The public key as PEM, to the byte as it was sent.
    pub key: Arc<str>,
    /// Base64.
    pub signature: Box<str>,
}

/// A fact as it is sent and saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub fact: Fact,
    pub signatures: Vec<Signature>,
}

impl Envelope {
    #[must_use]
    pub fn unsigned(fact: Fact) -> Self {
        Self {
            fact,
            signatures: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
