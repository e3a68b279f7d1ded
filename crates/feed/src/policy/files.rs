//! Files of policies and providers: a directory and all below it, or an empty marker file instead.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Limits on what is searched: a wrong directory must be refused, not read.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 10_000;
const MAX_BYTES: u64 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Error {
    pub path: PathBuf,
    pub reason: String,
}

impl Error {
    pub(crate) fn new(path: &Path, reason: impl ToString) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn neither(directory: &Path, ending: &str, marker: &str) -> Self {
        let reason = format!("there is neither a *.{ending} file nor an empty file named {marker}");
        Self::new(directory, reason)
    }
}

/// The files of a directory and of all below it.
#[derive(Debug)]
pub(crate) struct DirectoryFiles {
    /// In the order of their paths.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) marker: bool,
}

/// Looks through a directory and all below it.
pub(crate) fn find(directory: &Path, ending: &str, marker: &str) -> Result<DirectoryFiles, Error> {
    let mut found = DirectoryFiles {
        files: Vec::new(),
        marker: false,
    };
    let mut entries = 0;
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((place, depth)) = waiting.pop() {
        let at = |error: io::Error| Error::new(&place, error);
        for entry in fs::read_dir(&place).map_err(at)? {
            let path = entry.map_err(at)?.path();
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(Error::new(directory, "has more than 10000 entries"));
            }
            // Follows links: policies are often mounted as links to files.
            let metadata = fs::metadata(&path).map_err(|error| Error::new(&path, error))?;
            if metadata.is_dir() {
                if depth + 1 == MAX_DEPTH {
                    return Err(Error::new(&path, "is nested more than 16 deep"));
                }
                waiting.push((path, depth + 1));
            } else if path.extension().is_some_and(|found| found == ending) {
                found.files.push(path);
            } else if path.file_name().is_some_and(|name| name == marker) {
                found.marker = true;
            }
        }
    }
    found.files.sort();
    Ok(found)
}

/// A file's text: UTF-8, or UTF-16 where a mark at its beginning says so.
pub(crate) fn text(file: &Path) -> Result<String, Error> {
    let size = fs::metadata(file)
        .map_err(|error| Error::new(file, error))?
        .len();
    if size > MAX_BYTES {
        return Err(Error::new(file, "is larger than 1 MiB"));
    }
    let bytes = fs::read(file).map_err(|error| Error::new(file, error))?;
    let read = match bytes.as_slice() {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        all => String::from_utf8(all.to_vec()).ok(),
    };
    read.ok_or_else(|| Error::new(file, "is neither UTF-8 nor UTF-16"))
}

fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let pairs = bytes.chunks(2).map(|pair| pair.try_into().map(unit));
    let units: Vec<u16> = pairs.collect::<Result<_, _>>().ok()?;
    String::from_utf16(&units).ok()
}
