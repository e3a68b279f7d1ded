//! The repository as cargo sees it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    /// The output of `cargo metadata --no-deps`.
    pub(crate) metadata: Value,
}

impl Workspace {
    pub(crate) fn load() -> Result<Workspace> {
        let metadata = metadata(&["--no-deps"])?;
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

    /// The whole graph of dependencies, with all features, for these platforms.
    pub(crate) fn graph(&self, platforms: &[String]) -> Result<Value> {
        let mut arguments = vec!["--all-features"];
        for platform in platforms {
            arguments.extend(["--filter-platform", platform]);
        }
        metadata(&arguments)
    }

    /// The directories of our crates, without `crates/`.
    pub(crate) fn crates(&self) -> Vec<String> {
        let packages = self.metadata["packages"].as_array().into_iter().flatten();
        let mut names: Vec<String> = packages
            .filter_map(|package| {
                Path::new(package["manifest_path"].as_str()?)
                    .parent()?
                    .file_name()
            })
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The compiler that cargo uses here.
    pub(crate) fn rustc(&self, arguments: &[&str]) -> Command {
        let rustc = env::var_os("RUSTC").map_or_else(|| "rustc".into(), PathBuf::from);
        let mut command = Command::new(rustc);
        command.args(arguments).current_dir(&self.root);
        command
    }

    /// The directory for tools that the machine does not have.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// Cargo in the repository, with the tools of that directory as subcommands.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let path = env::var_os("PATH").unwrap_or_default();
        let dirs = env::split_paths(&path).chain([self.tools().join("bin")]);
        let mut command = Command::new(cargo());
        command.args(arguments).current_dir(&self.root);
        // `cargo run` sets these variables for xtask. The build script of ring reads them, so ring and
        // all that uses it would be built again.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        if let Ok(path) = env::join_paths(dirs) {
            command.env("PATH", path);
        }
        command
    }
}

fn metadata(arguments: &[&str]) -> Result<Value> {
    let output = Command::new(cargo())
        .args(["metadata", "--format-version=1"])
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .output()
        .context("running cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}
