//! The PostgreSQL that the tests of a run share. It is fast because it forgets: it never syncs, and
//! lives in memory where there is room.
//!
//! There is no way to stop or to crash it. A test of what survives that starts a [`Postgres`] of its
//! own, which syncs as a default installation does.

use std::path::Path;
use std::process::{self, Command};
use std::{env, fs};

use anyhow::Result;

use crate::Postgres;

const SETTINGS: &[&str] = &[
    "fsync=off",
    "full_page_writes=off",
    // Several tests and suites of clients at once, each with nodes of ten connections.
    "max_connections=600",
    // Each is memory or disk space that is not read again.
    "max_wal_size=256MB",
];

const PREFIX: &str = "wakeline-shared-postgres-";
const MEMORY: &str = "/dev/shm";
/// The write-ahead log and the databases of all tests that run at the same time take about 1 GiB.
const NEEDED_KIB: u64 = 3 << 20;

#[derive(Debug)]
pub struct SharedPostgres(Postgres);

impl SharedPostgres {
    /// A new, empty cluster, answering when this returns.
    pub fn start() -> Result<SharedPostgres> {
        let prefix = format!("{PREFIX}{}-", process::id());
        // First: what was left may be what takes the room.
        remove_left(Path::new(MEMORY));
        let place = if memory_has_room() {
            MEMORY.into()
        } else {
            env::temp_dir()
        };
        let postgres = Postgres::start_with(&place, &prefix, SETTINGS)?;
        Ok(SharedPostgres(postgres))
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port()
    }

    #[must_use]
    pub fn url(&self) -> String {
        self.0.url()
    }
}

/// On a disk, files that are removed and made again all the time cost ten times as much: ext4 does
/// not use an inode again for minutes, and looks past each of those for every new file.
fn memory_has_room() -> bool {
    // What the file system allows and what the machine has are two things.
    free_kib(MEMORY).is_some_and(|free| free >= NEEDED_KIB)
        && available_kib().is_some_and(|available| available >= 2 * NEEDED_KIB)
}

/// A run that was killed could not remove its directory, and memory is not to be lost for ever.
fn remove_left(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let starter = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if starter.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn free_kib(place: &str) -> Option<u64> {
    let output = Command::new("df").args(["-Pk", place]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()
}

fn available_kib() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_runs_are_removed_and_those_in_use_are_kept() {
        let place = tempfile::tempdir().unwrap();
        // No process has this number: Linux gives none above 4,194,304.
        let left = place.path().join(format!("{PREFIX}99999999-abc"));
        let used = place.path().join(format!("{PREFIX}{}-abc", process::id()));
        let other = place.path().join("other");
        for dir in [&left, &used, &other] {
            fs::create_dir(dir).unwrap();
        }
        remove_left(place.path());
        assert!(!left.exists());
        assert!(used.exists() && other.exists());
    }
}
