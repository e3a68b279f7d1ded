//! Servers that a run starts for itself. Each has a loopback port that it keeps over restarts, and
//! ends with the run.

use std::cell::Cell;
use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tempfile::TempDir;
use wakeline_testbed::{Account, Postgres, Process, free_port};

/// The server to measure: the program that the caller named, else `wakeline` beside this program,
/// where cargo puts both.
pub(crate) fn wakeline_program(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let beside = std::env::current_exe()?.with_file_name("wakeline");
    if !beside.is_file() {
        bail!(
            "there is no server at {}: build it (`cargo build --release`), or name one with \
             --wakeline-bin",
            beside.display()
        );
    }
    Ok(beside)
}

/// One process of a server, Wakeline or another.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    port: u16,
    /// What the server prints when it listens, if it prints anything.
    ready_text: Option<&'static str>,
    dir: TempDir,
    starts: u32,
    process: Option<Process>,
    pid: Option<u32>,
}

impl ServerProcess {
    /// Wakeline from `program`, on a file of its own or on the database at `postgres`.
    pub(crate) fn wakeline(
        program: &Path,
        postgres: Option<&str>,
        flags: &[&str],
    ) -> anyhow::Result<Self> {
        let mut server = Self::new("wakeline", program)?;
        server.arguments = vec![
            "serve".to_owned(),
            format!("--listen=127.0.0.1:{}", server.port),
            format!("--data={}", server.dir.path().join("data").display()),
        ];
        let store = postgres.map(|url| format!("--store={url}"));
        server.arguments.extend(store);
        let flags = flags.iter().map(|&flag| flag.to_owned());
        server.arguments.extend(flags);
        server.ready_text = Some("listening on");
        server.started()
    }

    /// Queen from `program`, in a database of its own.
    pub(crate) fn queen(
        program: &Path,
        postgres: &Postgres,
        database: &str,
    ) -> anyhow::Result<Self> {
        let mut server = Self::new("queen", program)?;
        let buffers = server.dir.path().join("buffers").display().to_string();
        server.environment = vec![
            ("PORT", server.port.to_string()),
            ("QUEEN_BIND_ADDR", "127.0.0.1".to_owned()),
            ("QUEEN_MESH_PORT", free_port()?.to_string()),
            ("QUEEN_MESH_BIND_ADDR", "127.0.0.1".to_owned()),
            ("PG_HOST", "127.0.0.1".to_owned()),
            ("PG_PORT", postgres.port().to_string()),
            ("PG_USER", "postgres".to_owned()),
            ("PG_PASSWORD", "postgres".to_owned()),
            ("PG_DB", database.to_owned()),
            ("FILE_BUFFER_DIR", buffers),
            ("LOG_LEVEL", "warn".to_owned()),
        ];
        server.started()
    }

    /// What the interpreter makes of `script`. `arguments` gets the port that it may listen on.
    pub(crate) fn script(
        name: &'static str,
        interpreter: &Path,
        script: &Path,
        arguments: impl FnOnce(u16) -> Vec<String>,
        ready_text: &'static str,
    ) -> anyhow::Result<Self> {
        let mut server = Self::new(name, interpreter)?;
        server.arguments = vec![script.display().to_string()];
        server.arguments.extend(arguments(server.port));
        server.ready_text = Some(ready_text);
        server.started()
    }

    fn new(name: &'static str, program: &Path) -> anyhow::Result<Self> {
        let program = program
            .canonicalize()
            .with_context(|| format!("{} is not there", program.display()))?;
        Ok(Self {
            name,
            program,
            arguments: Vec::new(),
            environment: Vec::new(),
            port: free_port()?,
            ready_text: None,
            dir: tempfile::Builder::new()
                .prefix("wakeline-bench-")
                .tempdir()?,
            starts: 0,
            process: None,
            pid: None,
        })
    }

    fn started(mut self) -> anyhow::Result<Self> {
        self.start()?;
        Ok(self)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Of the process that runs now.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Returns when the server listens, on the same data and the same address as before.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        if self.process.is_some() {
            bail!("this {} runs already", self.name);
        }
        self.starts += 1;
        // Nothing is inherited: a variable of the caller's must not change what is measured.
        let mut command = Account::Own.command(&self.program, "KILL")?;
        command
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .args(&self.arguments)
            .current_dir(self.dir.path());
        let log = self.dir.path().join(format!("log.{}", self.starts));
        let (port, ready_text) = (self.port, self.ready_text);
        let started = Cell::new(None);
        let process = Process::start(self.name, command, &log, |pid| {
            started.set(Some(pid));
            match ready_text {
                // Another process might have taken the port first, and answer a connection.
                Some(words) => fs::read_to_string(&log).is_ok_and(|text| text.contains(words)),
                None => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok(),
            }
        })?;
        self.process = Some(process);
        self.pid = started.get();
        Ok(())
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        self.pid = None;
        self.process
            .take()
            .map_or(Ok(()), |mut process| process.end("KILL"))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("{error:#}");
        }
    }
}
