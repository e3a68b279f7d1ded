//! Where the servers' programs are on this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

/// Debian keeps servers in `sbin`, which an ordinary user's `PATH` leaves out.
const BEYOND_PATH: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Debian hides `initdb` and `postgres` here, one directory per major version.
const DEBIAN_POSTGRES: &str = "/usr/lib/postgresql";

#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(BEYOND_PATH.iter().map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// The directory that holds both `initdb` and `postgres`: the one on `PATH`,
/// or else the newest that Debian installed.
#[must_use]
pub fn find_postgres() -> Option<PathBuf> {
    // A link on PATH is followed: the server's libraries are beside the real file.
    let on_path = find_program("initdb")
        .and_then(|file| fs::canonicalize(file).ok())
        .and_then(|file| Some(file.parent()?.to_owned()));
    on_path
        .into_iter()
        .chain(debian_versions(Path::new(DEBIAN_POSTGRES)))
        .find(|dir| dir.join("initdb").is_file() && dir.join("postgres").is_file())
}

fn debian_versions(root: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    versions.into_iter().map(|(_, dir)| dir).collect()
}

pub(crate) fn program(name: &str, package: &str) -> Result<PathBuf> {
    find_program(name)
        .ok_or_else(|| anyhow!("{name} is not installed; on Debian: apt-get install {package}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_debian_version_comes_first() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9", "15", "README", "14"] {
            fs::create_dir(root.path().join(version)).unwrap();
        }
        let found = debian_versions(root.path());
        let expected = ["15", "14", "9"].map(|version| root.path().join(version).join("bin"));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_program_outside_of_path_is_not_invented() {
        assert_eq!(find_program("wakeline-no-such-program"), None);
    }
}
