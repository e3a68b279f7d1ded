//! A disk of a few megabytes, for tests of what happens when it is full.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use anyhow::{Context, Result, bail, ensure};

use crate::programs::program;

const PREFIX: &str = "wakeline-small-disk-";
const STUFFING: &str = "stuffing";
const CHUNK: usize = 4096;

/// A file system in memory, gone with this.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Needs root, as every mount does.
    pub fn mount(mebibytes: u32) -> Result<SmallDisk> {
        unmount_left(&std::env::temp_dir());
        let path = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", process::id()))
            .tempdir()?
            .keep();
        let disk = SmallDisk { path };
        let output = Command::new(program("mount", "mount")?)
            .args(["-t", "tmpfs", "-o"])
            .arg(format!("size={mebibytes}m,mode=0755"))
            .arg("wakeline-small-disk")
            .arg(&disk.path)
            .output()?;
        ensure!(
            output.status.success(),
            "a test of a full disk mounts a small one, which needs root and the right to mount: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(disk)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes up what is left, but for `bytes`.
    pub fn fill_but(&self, bytes: u64) -> Result<()> {
        let path = self.path.join(STUFFING);
        let mut file = File::options().create(true).append(true).open(&path)?;
        loop {
            match file.write_all(&[1; CHUNK]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(error).context("filling a disk"),
            }
        }
        let length = file.metadata()?.len();
        if length < bytes {
            bail!("the disk had only {length} bytes left");
        }
        file.set_len(length - bytes)?;
        Ok(())
    }

    /// Gives back what was taken up.
    pub fn empty(&self) -> Result<()> {
        Ok(fs::remove_file(self.path.join(STUFFING))?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.path);
    }
}

/// Lazily: a server that is about to end may still have files open.
fn unmount(path: &Path) {
    let _ = Command::new("umount").arg("--lazy").arg(path).output();
    // Not with what is in it: were it still mounted, that would be the disk's.
    let _ = fs::remove_dir(path);
}

/// A run that was killed could not unmount its own.
fn unmount_left(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let mounter = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if mounter.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            unmount(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_disk_is_full_when_it_is_filled_and_has_room_again_when_it_is_emptied() {
        let disk = SmallDisk::mount(2).unwrap();
        let path = disk.path().to_owned();
        let write = |bytes: usize| fs::write(path.join("file"), vec![0; bytes]);
        disk.fill_but(64 << 10).unwrap();
        write(32 << 10).unwrap();
        assert_eq!(write(128 << 10).unwrap_err().kind(), ErrorKind::StorageFull);
        disk.empty().unwrap();
        write(128 << 10).unwrap();
        drop(disk);
        assert!(!path.exists());
    }
}
