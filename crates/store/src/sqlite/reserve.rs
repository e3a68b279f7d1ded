//! A file beside the database that only takes up room. When the disk is full, its room goes to the
//! log and to what the log holds, so that what frees room can still be written.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// So much more must be free before the disk counts as one with room again: else the first writes
/// would fill it up at once.
const MARGIN: u64 = 2 << 20;
const CHUNK: usize = 256 << 10;
/// The unit of [`MetadataExt::blocks`].
const BLOCK: u64 = 512;

#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    size: u64,
}

impl Reserve {
    pub(super) fn beside(database: &Path, size: u64) -> Self {
        let mut name = database.as_os_str().to_owned();
        name.push("-reserve");
        Self {
            path: name.into(),
            size,
        }
    }

    /// At the start. `false`: there is no room for it.
    pub(super) fn is_kept(&self) -> io::Result<bool> {
        if self.size == 0 {
            return Ok(true);
        }
        match std::fs::metadata(&self.path) {
            Ok(metadata) if metadata.blocks() * BLOCK >= self.size => Ok(true),
            _ => self.take(),
        }
    }

    /// Takes up its room, if the disk has that and [`MARGIN`] more. By writing, because nothing else
    /// tells what this process may still use: quotas and room that is kept for root count too.
    pub(super) fn take(&self) -> io::Result<bool> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&self.path);
        let taken = file.and_then(|mut file| {
            fill(&mut file, self.size + MARGIN)?;
            file.set_len(self.size)
        });
        if self.size == 0 || taken.is_err() {
            let _ = self.release();
        }
        match taken {
            Ok(()) => Ok(true),
            Err(error) if is_full(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives its room back.
    pub(super) fn release(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// With random bytes: a file system that compresses would store zeros in no room at all.
fn fill(file: &mut File, size: u64) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    rand::fill(&mut chunk[..]);
    let mut left = size;
    while left > 0 {
        let length = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
        file.write_all(&chunk[..length])?;
        left -= length as u64;
    }
    Ok(())
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}
