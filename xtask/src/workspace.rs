//! The repository as cargo sees it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    /// The answer of `cargo metadata --no-deps`.
    pub(crate) metadata: Value,
}

impl Workspace {
    pub(crate) fn load() -> Result<Workspace> {
        let output = Command::new(cargo())
            .args(["metadata", "--no-deps", "--format-version=1"])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
            .output()
            .context("running cargo metadata")?;
        ensure!(
            output.status.success(),
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let path = |key: &str| -> Result<PathBuf> {
            let text = metadata[key].as_str();
            Ok(text
                .with_context(|| format!("metadata has no {key}"))?
                .into())
        };
        Ok(Workspace {
            root: path("workspace_root")?,
            target: path("target_directory")?,
            metadata,
        })
    }

    /// Where tools are installed that the machine does not have.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// Cargo in the repository, with our own tools as subcommands.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let path = env::var_os("PATH").unwrap_or_default();
        let dirs = env::split_paths(&path).chain([self.tools().join("bin")]);
        let mut command = Command::new(cargo());
        command.args(arguments).current_dir(&self.root);
        if let Ok(path) = env::join_paths(dirs) {
            command.env("PATH", path);
        }
        command
    }
}

fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}
