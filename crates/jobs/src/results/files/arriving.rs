//! An answer's file while it is coming in, under a name of its own.

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

use super::{directory::Directory, name::Name, shelf::Shelf, tail::Tail};
use crate::results::Etag;

const PREFIX: &str = "coming.";

/// Gone when it is dropped, unless it was kept.
pub(super) struct Arriving {
    directory: Arc<Directory>,
    path: PathBuf,
    file: File,
    hasher: Sha256,
    bytes: u64,
    taken: u64,
}

impl Arriving {
    pub(super) fn create(directory: &Arc<Directory>) -> io::Result<Self> {
        let path = directory.path(format_args!("{PREFIX}{}", Uuid::new_v4()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let arriving = Self {
            directory: directory.clone(),
            path,
            file,
            hasher: Sha256::new(),
            bytes: 0,
            taken: 0,
        };
        // By this whoever finds it later knows that somebody is at it. Where the file system knows
        // no locks, it can be mistaken for a left-over and the answer is asked for again.
        let _ = arriving.file.try_lock();
        Ok(arriving)
    }

    /// `false`: there is no room for it, whatever else would be removed.
    pub(super) fn write(&mut self, chunks: &[Bytes]) -> io::Result<bool> {
        let more: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let needed = Shelf::size(self.bytes + more + Tail::BYTES as u64);
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

    /// In one moment, in the place of an earlier one. Not flushed: what a power cut tears is told
    /// by its sum.
    pub(super) fn keep(mut self, name: Name, is_error: bool, expires_at: i64) -> io::Result<()> {
        let tail = Tail {
            is_error,
            expires_at,
            etag: Etag::of(self.hasher.clone()),
        };
        self.file.write_all(&tail.to_bytes())?;
        let bytes = self.bytes + Tail::BYTES as u64;
        let taken = mem::take(&mut self.taken);
        self.directory
            .keep(&self.path, taken, name, (bytes, expires_at))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.directory.give_back(self.taken);
        // Not there any more when it was kept.
        let _ = fs::remove_file(&self.path);
    }
}

pub(super) fn is_name(text: &str) -> bool {
    text.strip_prefix(PREFIX)
        .is_some_and(|id| id.parse::<Uuid>().is_ok())
}

/// Removes what a process that has ended left behind, and nothing that is still being written, by
/// another process too.
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
