//! Directories of the test's own, and helpers that list them.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tempfile::TempDir;
use wakeline_jobs::internal::{
    Failure, InternalProvider,
    filesystem::{FilesystemRead, Limits},
};

pub(crate) struct TestTree {
    directory: TempDir,
}

impl TestTree {
    /// A tree of these files and directories: a path with a final slash is a directory, and parents
    /// are created.
    pub(crate) fn with(paths: &[&str]) -> Self {
        let tree = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        for path in paths {
            tree.put(path);
        }
        tree
    }

    pub(crate) fn put(&self, path: &str) {
        let at = self.at(path);
        if path.ends_with('/') {
            return fs::create_dir_all(at).unwrap();
        }
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        // The content is as long as the name, so that sizes differ.
        fs::write(&at, at.file_name().unwrap().as_encoded_bytes()).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        symlink(target, self.at(path)).unwrap();
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn provider(&self, roots: &[&str]) -> FilesystemRead {
        self.provider_within(roots, Limits::default())
    }

    pub(crate) fn provider_within(&self, roots: &[&str], limits: Limits) -> FilesystemRead {
        let roots = roots.iter().map(|root| self.at(root)).collect();
        FilesystemRead::new(roots, limits).unwrap()
    }
}

pub(crate) async fn read(
    provider: &FilesystemRead,
    params: &[(&str, &str)],
) -> Result<Vec<Value>, Failure> {
    let params = params
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_string()));
    let answer = provider.read(params.collect::<BTreeMap<_, _>>()).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

/// The listed paths as one text; directories with a slash.
pub(crate) async fn seen(provider: &FilesystemRead, params: &[(&str, &str)]) -> String {
    let entries = read(provider, params).await.unwrap();
    let paths = entries.iter().map(|entry| {
        let slash = if entry["type"] == "directory" {
            "/"
        } else {
            ""
        };
        format!("{}{slash}", entry["path"].as_str().unwrap())
    });
    paths.collect::<Vec<_>>().join(" ")
}

pub(crate) async fn refusal(provider: &FilesystemRead, params: &[(&str, &str)]) -> String {
    read(provider, params).await.unwrap_err().to_string()
}
