//! Files of policies and providers: a directory searched with all below it, or a marker that says
//! that none is wanted.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Limits on what is searched: a wrong directory must be refused, not read.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 10_000;
const MAX_BYTES: u64 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {reason}", file.display())]
    File { file: PathBuf, reason: String },
    #[error("{}: there is neither a *.{ending} file nor an empty file named {marker}", directory.display())]
    Neither {
        directory: PathBuf,
        ending: &'static str,
        marker: &'static str,
    },
    #[error("{}: there are *.{ending} files and a file named {marker}; remove one of both", directory.display())]
    Both {
        directory: PathBuf,
        ending: &'static str,
        marker: &'static str,
    },
}

/// What a directory has.
#[derive(Debug)]
pub(crate) struct Found {
    /// In the order of their paths.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) marker: bool,
}

/// Looks through a directory and all below it.
pub(crate) fn find(directory: &Path, ending: &str, marker: &str) -> Result<Found, Error> {
    let mut found = Found {
        files: Vec::new(),
        marker: false,
    };
    let mut entries = 0;
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((place, depth)) = waiting.pop() {
        let at = |error: io::Error| failed(&place, &error);
        for entry in fs::read_dir(&place).map_err(at)? {
            let path = entry.map_err(at)?.path();
            entries += 1;
            if entries > MAX_ENTRIES {
                return Err(refused(directory, "has more than 10000 entries"));
            }
            // Follows links: policies are often mounted as links to files.
            let metadata = fs::metadata(&path).map_err(|error| failed(&path, &error))?;
            if metadata.is_dir() {
                if depth + 1 == MAX_DEPTH {
                    return Err(refused(&path, "is nested more than 16 deep"));
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
        .map_err(|error| failed(file, &error))?
        .len();
    if size > MAX_BYTES {
        return Err(refused(file, "is larger than 1 MiB"));
    }
    let bytes = fs::read(file).map_err(|error| failed(file, &error))?;
    let read = match bytes.as_slice() {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        all => String::from_utf8(all.to_vec()).ok(),
    };
    read.ok_or_else(|| refused(file, "is neither UTF-8 nor UTF-16"))
}

fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let pairs = bytes.chunks(2).map(|pair| pair.try_into().map(unit));
    let units: Vec<u16> = pairs.collect::<Result<_, _>>().ok()?;
    String::from_utf16(&units).ok()
}

fn failed(path: &Path, error: &io::Error) -> Error {
    refused(path, &error.to_string())
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::File {
        file: path.to_owned(),
        reason: reason.to_owned(),
    }
}
