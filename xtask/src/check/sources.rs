//! The files the checks read.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

pub(crate) struct Source {
    /// Relative to the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    #[cfg(test)]
    pub(crate) fn new(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// The crate's directory name: `queue` of `crates/queue/src/lib.rs`.
    pub(crate) fn crate_name(&self) -> &str {
        let mut parts = self.path.split('/');
        match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            first => first.unwrap_or_default(),
        }
    }

    pub(crate) fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| matches!(part, "tests" | "benches" | "tests.rs"))
    }
}

pub(crate) fn rust(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for top in ["crates", "xtask"] {
        collect(root, &root.join(top), "rs", &mut found)?;
    }
    Ok(found)
}

pub(crate) fn sql(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    collect(root, &root.join("crates"), "sql", &mut found)?;
    Ok(found)
}

/// The documents at the top and everything under `docs/`.
pub(crate) fn markdown(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for name in sorted(root)? {
        if name.ends_with(".md") {
            found.push(read(root, &root.join(name))?);
        }
    }
    if root.join("docs").is_dir() {
        collect(root, &root.join("docs"), "md", &mut found)?;
    }
    Ok(found)
}

fn collect(root: &Path, dir: &Path, extension: &str, found: &mut Vec<Source>) -> Result<()> {
    for name in sorted(dir)? {
        let path = dir.join(&name);
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "node_modules") {
                collect(root, &path, extension, found)?;
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(read(root, &path)?);
        }
    }
    Ok(())
}

fn sorted(dir: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

fn read(root: &Path, path: &Path) -> Result<Source> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let path = path.strip_prefix(root)?.to_string_lossy().into_owned();
    Ok(Source { path, text })
}
