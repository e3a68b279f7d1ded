//! zndraw-joblib itself, from PyPI: a directory with its host and a provider.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use wakeline_testbed::find_program;

use crate::own::OwnServer;

pub(super) struct Peer {
    python: PathBuf,
    start: PathBuf,
    provider: PathBuf,
}

impl Peer {
    pub(super) fn find(directory: &Path) -> anyhow::Result<Self> {
        let directory = directory.canonicalize().with_context(|| {
            format!(
                "{} is not there: run it in a checkout of Wakeline, or give --peer",
                directory.display()
            )
        })?;
        Ok(Self {
            python: find_program("python3").context("python3 is not installed")?,
            start: directory.join("start"),
            provider: directory.join("provider.py"),
        })
    }

    /// Returns when its packages are there; the first time that takes some minutes.
    pub(super) fn prepare(&self) -> anyhow::Result<()> {
        eprintln!("preparing zndraw-joblib");
        let status = Command::new(&self.python)
            .arg(&self.start)
            .arg("--help")
            .stdout(Stdio::null())
            .status()
            .context("running python3")?;
        ensure!(status.success(), "{} failed", self.start.display());
        Ok(())
    }

    pub(super) fn host(&self, postgres: &str, redis: &str) -> anyhow::Result<OwnServer> {
        OwnServer::upstream(&self.python, &self.start, postgres, redis)
    }

    /// One that answers reads of `name` in `room` of the server at `url`, until it is dropped.
    pub(super) fn provider(&self, url: &str, room: &str, name: &str) -> anyhow::Result<OwnServer> {
        OwnServer::provider(&self.python, &self.provider, url, room, name)
    }
}
