//! Modes of what the server has on disk: only its own user can read it, whatever the umask.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::{Result, bail};

pub(super) const DATABASE: &str = "wakeline.db";
pub(super) const LOCK: &str = "wakeline.lock";
/// As the jobs door is told.
const RESULTS: &str = "results";
/// What the queue door makes its key as, and the key itself.
const KEYS: [&str; 2] = [wakeline_queue::seal::FILE_NAME, "encryption.key.new"];
/// What SQLite and the store put beside the database.
const BESIDE_DATABASE: [&str; 4] = ["", "-wal", "-shm", "-reserve"];

const ALL_OF_OTHERS: u32 = 0o077;
const WRITE_OF_OTHERS: u32 = 0o022;
const ROOT: u32 = 0;
/// What the owner needs.
const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;

/// A file that has secrets: refused if others can change it, since they could choose the secrets.
/// The server has not made it, so it does not change its mode either.
pub(super) fn check_secrets(path: &Path) -> Result<()> {
    let Ok(metadata) = fs::metadata(path) else {
        return Ok(());
    };
    let mode = metadata.permissions().mode();
    if !metadata.is_file() {
        return Ok(());
    }
    // As PostgreSQL has it for its keys: root may give its file to the service's group to read.
    let private = if metadata.uid() == ROOT { 0o640 } else { FILE };
    let path = path.display();
    if mode & WRITE_OF_OTHERS != 0 {
        bail!("{path} has secrets, and others can change it: run chmod {private:o} {path}");
    }
    if mode & ALL_OF_OTHERS & !private != 0 {
        tracing::warn!("{path} has secrets, and others can read it: run chmod {private:o} {path}");
    }
    Ok(())
}

/// The directory, made if it is not there.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(DIRECTORY).create(path)
}

/// The file, made if it is not there.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true).mode(FILE);
    let file = options.open(path)?;
    tighten(path, &file.metadata()?, FILE);
    Ok(file)
}

/// Sets right what an earlier start, a copy or a restored backup left readable for others.
pub(super) fn tighten_data(data: &Path) {
    let Ok(metadata) = fs::metadata(data) else {
        return;
    };
    if is_too_open(&metadata, DIRECTORY) && !has_only_our_files(data) {
        // It may be a directory such as /tmp, which many need.
        tracing::warn!(
            "others can open the data directory {0}, and it has files that are not Wakeline's: give \
             the server a directory of its own, or run chmod 700 {0}",
            data.display()
        );
    } else {
        tighten(data, &metadata, DIRECTORY);
    }
    for suffix in BESIDE_DATABASE {
        tighten_file(&data.join(format!("{DATABASE}{suffix}")));
    }
    for name in KEYS {
        tighten_file(&data.join(name));
    }
    let results = data.join(RESULTS);
    let Ok(metadata) = fs::symlink_metadata(&results) else {
        return;
    };
    if metadata.is_dir() {
        tighten(&results, &metadata, DIRECTORY);
        for file in fs::read_dir(&results).into_iter().flatten().flatten() {
            tighten_file(&file.path());
        }
    }
}

/// The same where the database is elsewhere and the directory has results at most.
pub(super) fn tighten_results(data: &Path) {
    if data.join(RESULTS).exists() {
        tighten_data(data);
    }
}

fn is_ours(name: &str) -> bool {
    let beside = name.strip_prefix(DATABASE);
    name == LOCK
        || name == RESULTS
        || KEYS.contains(&name)
        || beside.is_some_and(|suffix| BESIDE_DATABASE.contains(&suffix))
}

fn has_only_our_files(data: &Path) -> bool {
    let Ok(entries) = fs::read_dir(data) else {
        return false;
    };
    entries
        .flatten()
        .all(|entry| entry.file_name().to_str().is_some_and(is_ours))
}

fn tighten_file(path: &Path) {
    // A link leads to a file that may be another's.
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => tighten(path, &metadata, FILE),
        _ => {}
    }
}

fn is_too_open(metadata: &Metadata, needed: u32) -> bool {
    let mode = metadata.permissions().mode();
    mode != private_mode(mode, needed)
}

fn private_mode(mode: u32, needed: u32) -> u32 {
    mode & !ALL_OF_OTHERS | needed
}

/// A failure is no reason not to start: on a mounted volume the owner may be another user.
fn tighten(path: &Path, metadata: &Metadata, needed: u32) {
    if !is_too_open(metadata, needed) {
        return;
    }
    let mode = metadata.permissions().mode();
    let private = private_mode(mode, needed);
    match fs::set_permissions(path, Permissions::from_mode(private)) {
        Ok(()) => tracing::info!(
            path = %path.display(),
            "others could open it: its mode was {:o} and is {:o} now",
            mode & 0o7777,
            private & 0o7777
        ),
        Err(error) => tracing::warn!(
            "others can open {0}, and its mode cannot be changed ({error}): as its owner run \
             chmod {needed:o} {0}",
            path.display()
        ),
    }
}
