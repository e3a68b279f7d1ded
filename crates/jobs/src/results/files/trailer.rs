//! The last bytes of an answer's file, behind the answer's own.

use std::{fs::File, io, os::unix::fs::FileExt};

use sha2::{Digest, Sha256};

use crate::results::Etag;

const SIGN: &[u8; 7] = b"wakelin";
/// Bytes that are read at once to verify the checksum.
const READ_AT_ONCE: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) is_error: bool,
    /// Microseconds since 1970.
    pub(super) expires_at: i64,
    pub(super) etag: Etag,
}

impl Trailer {
    pub(super) const BYTES: usize = SIGN.len() + 1 + 8 + Etag::BYTES;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..7].copy_from_slice(SIGN);
        bytes[7] = u8::from(self.is_error);
        bytes[8..16].copy_from_slice(&self.expires_at.to_le_bytes());
        bytes[16..].copy_from_slice(self.etag.as_bytes());
        bytes
    }

    /// Also returns the length of the answer. `None` if the file was not written to its end.
    pub(super) fn read(file: &File) -> io::Result<Option<(Self, u64)>> {
        let Some(length) = file.metadata()?.len().checked_sub(Self::BYTES as u64) else {
            return Ok(None);
        };
        let mut bytes = [0; Self::BYTES];
        file.read_exact_at(&mut bytes, length)?;
        Ok(Self::from_bytes(&bytes).map(|trailer| (trailer, length)))
    }

    fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        Some(Self {
            is_error: bytes[7] != 0,
            expires_at: i64::from_le_bytes(bytes[8..16].try_into().ok()?),
            etag: Etag::from_bytes(bytes[16..].try_into().ok()?),
        })
        .filter(|_| bytes.starts_with(SIGN))
    }

    /// Whether the answer's bytes are those that were written.
    pub(super) fn fits(&self, file: &File, length: u64) -> io::Result<bool> {
        let mut hasher = Sha256::new();
        let mut bytes = vec![0; READ_AT_ONCE];
        let mut at = 0;
        while at < length {
            let wanted = usize::try_from(length - at).map_or(READ_AT_ONCE, |n| n.min(READ_AT_ONCE));
            match file.read_at(&mut bytes[..wanted], at)? {
                0 => return Ok(false),
                read => {
                    hasher.update(&bytes[..read]);
                    at += read as u64;
                }
            }
        }
        Ok(Etag::of(hasher) == self.etag)
    }
}
