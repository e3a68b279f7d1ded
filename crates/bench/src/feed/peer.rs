//! jinaga-server itself, from npm: a directory with its host.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use wakeline_testbed::find_program;

use crate::own::OwnServer;

pub(super) struct Peer {
    node: PathBuf,
    start: PathBuf,
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
            node: find_program("node").context("Node.js is not installed")?,
            start: directory.join("start"),
        })
    }

    /// Returns when its packages are there; the first time npm brings them.
    pub(super) fn prepare(&self) -> anyhow::Result<()> {
        eprintln!("preparing jinaga-server");
        let status = Command::new(&self.node)
            .arg(&self.start)
            .arg("--help")
            .stdout(Stdio::null())
            .status()
            .context("running Node.js")?;
        ensure!(status.success(), "{} failed", self.start.display());
        Ok(())
    }

    pub(super) fn host(&self, postgres: &str) -> anyhow::Result<OwnServer> {
        OwnServer::replicator(&self.node, &self.start, postgres)
    }
}
