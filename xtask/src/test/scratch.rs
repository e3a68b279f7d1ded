//! The temporary directory of one run. A test that is killed (it hung, or the run was interrupted)
//! leaves its files; the end of the run removes them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// The servers of a killed test end with it, but may still write for a moment.
const REMOVED_WITHIN: Duration = Duration::from_secs(10);
const TRY_EVERY: Duration = Duration::from_millis(50);

pub(crate) struct Scratch {
    pub(crate) path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Result<Scratch> {
        // A short name: socket paths below it may have at most 107 bytes.
        let dir = tempfile::Builder::new().prefix("wakeline-").tempdir()?;
        // PostgreSQL runs under another account and must pass through.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711))?;
        Ok(Scratch { path: dir.keep() })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let deadline = Instant::now() + REMOVED_WITHIN;
        while let Err(error) = fs::remove_dir_all(&self.path) {
            if Instant::now() >= deadline {
                eprintln!("{} is left: {error}", self.path.display());
                return;
            }
            thread::sleep(TRY_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_killed_test_are_removed() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path.clone();
        fs::create_dir(path.join("left")).unwrap();
        fs::write(path.join("left/file"), "x").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }
}
