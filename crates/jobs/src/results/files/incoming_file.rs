//! The file of an incoming answer, under a name of its own.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    mem,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{directory::Directory, index::FileIndex, name::FileName, trailer::Trailer};
use crate::results::Etag;

const PREFIX: &str = "coming.";

/// Removed when it is dropped, unless it was kept.
pub(super) struct IncomingFile {
    directory: Arc<Directory>,
    path: PathBuf,
    file: File,
    hasher: Sha256,
    bytes: u64,
    taken: u64,
}

impl IncomingFile {
    pub(super) fn create(directory: &Arc<Directory>) -> io::Result<Self> {
        let path = directory.path(format_args!("{PREFIX}{}", Uuid::new_v4()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let incoming_file = Self {
            directory: directory.clone(),
            path,
            file,
            hasher: Sha256::new(),
            bytes: 0,
            taken: 0,
        };
        // The lock tells a process that finds the file later that it is being written. Where the
        // file system has no locks, the file can be mistaken for a left-over, and the request is
        // sent again.
        let _ = incoming_file.file.try_lock();
        Ok(incoming_file)
    }

    /// `false`: the file does not fit, even if all others were removed.
    pub(super) fn write(&mut self, chunks: &[Bytes]) -> io::Result<bool> {
        let more: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let needed = FileIndex::size(self.bytes + more + Trailer::BYTES as u64);
        let has_room = self.directory.take(needed - self.taken);
        self.taken = needed;
        if !has_room {
            return Ok(false);
        }
        for chunk in chunks {
            self.hasher.update(chunk);
            self.file.write_all(chunk)?;
        }
        self.bytes += more;
        Ok(true)
    }

    /// Replaces an earlier file atomically. Not flushed: a file that a power cut has torn is
    /// recognised by its checksum.
    pub(super) fn keep(
        mut self,
        name: FileName,
        is_error: bool,
        expires_at: i64,
    ) -> io::Result<()> {
        let trailer = Trailer {
            is_error,
            expires_at,
            etag: Etag::of(self.hasher.clone()),
        };
        self.file.write_all(&trailer.to_bytes())?;
        let bytes = self.bytes + Trailer::BYTES as u64;
        let taken = mem::take(&mut self.taken);
        self.directory
            .keep(&self.path, taken, name, (bytes, expires_at))
    }
}

impl Drop for IncomingFile {
    fn drop(&mut self) {
        self.directory.give_back(self.taken);
        // A stored upload was renamed, so the file does not exist any more.
        let _ = fs::remove_file(&self.path);
    }
}

pub(super) fn is_name(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|id| id.parse::<Uuid>().is_ok())
}

/// Removes a file that a process that has ended left behind, and no file that any process still
/// writes.
pub(super) fn remove_if_left(path: &Path) -> io::Result<()> {
    let file = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}
