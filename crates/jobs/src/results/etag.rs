//! The ETag of an answer.

use std::fmt;

use sha2::{Digest, Sha256};

/// The same for the same bytes in every backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Etag([u8; Self::BYTES]);

impl Etag {
    pub(crate) const BYTES: usize = 16;

    /// Of the bytes that the hasher was given.
    pub(crate) fn of(hasher: Sha256) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(&hasher.finalize()[..Self::BYTES]);
        Self(bytes)
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

/// As in the header: strong, with its quotes.
impl fmt::Display for Etag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("\"")?;
        for byte in self.0 {
            write!(out, "{byte:02x}")?;
        }
        out.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_is_the_first_half_of_the_sha_256() {
        let etag = Etag::of(Sha256::new_with_prefix(b"{}"));
        assert_eq!(etag.to_string(), "\"44136fa355b3678a1146ad16f7e8649e\"");
    }
}
