//! The servers whose protocols Wakeline speaks, as their package registries have them: scripts below
//! `peers/` that install the packages and become the server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use wakeline_testbed::find_program;

use crate::server_process::ServerProcess;

pub(crate) struct Peer {
    /// As the report names it.
    pub(crate) name: &'static str,
    pub(crate) interpreter: &'static str,
    /// Given with --peer.
    pub(crate) directory: PathBuf,
    /// What its server prints when it listens.
    pub(crate) ready_text: &'static str,
    pub(crate) needs_redis: bool,
}

impl Peer {
    /// Returns when the packages are installed, which takes some minutes the first time.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        eprintln!("preparing {}", self.name);
        let start = self.script("start")?;
        let status = Command::new(self.interpreter()?)
            .arg(&start)
            .arg("--help")
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("running {}", self.interpreter))?;
        ensure!(status.success(), "{} failed", start.display());
        Ok(())
    }

    pub(crate) fn start(
        &self,
        postgres: &str,
        redis: Option<&str>,
    ) -> anyhow::Result<ServerProcess> {
        eprintln!("starting {}", self.name);
        let arguments = |port: u16| {
            let redis = redis.map(|url| format!("--redis={url}"));
            [format!("--port={port}"), format!("--database={postgres}")]
                .into_iter()
                .chain(redis)
                .collect()
        };
        ServerProcess::script(
            self.name,
            &self.interpreter()?,
            &self.script("start")?,
            arguments,
            self.ready_text,
        )
    }

    pub(crate) fn interpreter(&self) -> anyhow::Result<PathBuf> {
        let name = self.interpreter;
        find_program(name).with_context(|| format!("{name} is not installed"))
    }

    pub(crate) fn script(&self, name: &str) -> anyhow::Result<PathBuf> {
        let directory: &Path = &self.directory;
        let directory = directory.canonicalize().with_context(|| {
            format!(
                "{} is not there: run it in a checkout of Wakeline, or give --peer",
                directory.display()
            )
        })?;
        Ok(directory.join(name))
    }
}
