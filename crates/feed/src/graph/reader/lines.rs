//! Cuts what arrives into lines.

use super::Problem;

#[derive(Debug, Default)]
pub(super) struct Lines {
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
    /// The begun one is complete and lent; it is dropped at the next call.
    lent: bool,
    finished: u64,
    limit: usize,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Which line the next one is, counted from 1.
    pub(super) fn number(&self) -> u64 {
        self.finished + 1
    }

    /// Takes the next line and its number off the bytes; keeps what is left when no line end comes.
    pub(super) fn next<'a, 'b: 'a>(
        &'a mut self,
        bytes: &mut &'b [u8],
    ) -> Option<(u64, Result<&'a [u8], Problem>)> {
        if self.lent {
            self.begun.clear();
            self.lent = false;
        }
        let number = self.number();
        let long = Problem::Long { limit: self.limit };
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
            if self.begun.len() + bytes.len() > self.limit {
                return Some((number, Err(long)));
            }
            self.begun.extend_from_slice(bytes);
            return None;
        };
        let line = &bytes[..end];
        *bytes = &bytes[end + 1..];
        self.finished += 1;
        if self.begun.len() + line.len() > self.limit {
            return Some((number, Err(long)));
        }
        if self.begun.is_empty() {
            return Some((number, Ok(bare(line))));
        }
        self.begun.extend_from_slice(line);
        self.lent = true;
        Some((number, Ok(bare(&self.begun))))
    }

    /// The bytes after the last line end.
    pub(super) fn last(&mut self) -> Option<&[u8]> {
        if self.lent || self.begun.is_empty() {
            return None;
        }
        Some(bare(&self.begun))
    }
}

/// Without the CR of a CRLF, and without the byte order mark that upstream takes off each line.
fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(line)
}
