//! The inputs that are kept in the repository: examples of each format, and every input that has
//! once found a defect.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

fn directory(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
}

/// The kept inputs of a target with the names of their files, in the order of the names.
pub fn kept_inputs(target: &str) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let entries = fs::read_dir(directory(target))?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let read = paths.into_iter().map(|path| {
        let bytes = fs::read(&path)?;
        Ok((path, bytes))
    });
    read.collect()
}
