//! A private PostgreSQL with the durability of a default installation.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use tempfile::TempDir;

use crate::account::Account;
use crate::port::on_free_port;
use crate::process::Process;
use crate::programs::find_postgres;
use crate::psql::psql;
use crate::small_disk::SmallDisk;

const MAX_CONNECTIONS: &str = "max_connections=300";

#[derive(Debug)]
pub struct Postgres {
    process: Option<Process>,
    dir: TempDir,
    bin: PathBuf,
    account: Account,
    port: u16,
    settings: &'static [&'static str],
}

impl Postgres {
    /// A new, empty cluster, answering when this returns.
    pub fn start() -> Result<Postgres> {
        Self::start_with(&env::temp_dir(), "wakeline-postgres-", &[MAX_CONNECTIONS])
    }

    pub(crate) fn start_with(
        place: &Path,
        prefix: &str,
        settings: &'static [&'static str],
    ) -> Result<Postgres> {
        let bin = find_postgres().ok_or_else(|| {
            anyhow!("PostgreSQL is not installed; on Debian: apt-get install postgresql")
        })?;
        let account = Account::unprivileged()?;
        on_free_port(|port| {
            let dir = tempfile::Builder::new().prefix(prefix).tempdir_in(place)?;
            account.give(dir.path())?;
            let mut postgres = Postgres {
                process: None,
                dir,
                bin: bin.clone(),
                account,
                port,
                settings,
            };
            postgres.initdb()?;
            postgres.start_again()?;
            Ok(postgres)
        })
    }

    fn initdb(&self) -> Result<()> {
        let output = self
            .account
            .command(&self.bin.join("initdb"), "KILL")?
            .arg("--pgdata")
            .arg(self.data())
            .args(["--username=postgres", "--auth=trust"])
            .args(["--encoding=UTF8", "--locale=C.UTF-8"])
            // Only this one step: the server itself syncs as it always does.
            .arg("--no-sync")
            .current_dir(self.dir.path())
            .output()
            .context("running initdb")?;
        ensure!(
            output.status.success(),
            "initdb failed ({})\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    #[must_use]
    pub fn url(&self) -> String {
        self.url_for("postgres")
    }

    #[must_use]
    pub fn url_for(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// A new database whose tables are on that disk, by its URL. The write-ahead log is not there:
    /// without room for that a server ends, whatever its clients do.
    pub fn database_on(&self, disk: &SmallDisk) -> Result<String> {
        let place = disk.path().join("tablespace");
        fs::create_dir(&place)?;
        self.account.give(&place)?;
        let place = place.display();
        psql(
            &self.url(),
            &format!("CREATE TABLESPACE small LOCATION '{place}'"),
        )?;
        let create = "CREATE DATABASE small TABLESPACE small TEMPLATE template0";
        psql(&self.url(), create)?;
        Ok(self.url_for("small"))
    }

    /// A fast shutdown: sessions are cut, everything committed is kept.
    pub fn stop(&mut self) -> Result<()> {
        self.end("INT")
    }

    /// An immediate shutdown, without a checkpoint: the next start recovers
    /// from the write-ahead log, as after a power cut.
    pub fn crash(&mut self) -> Result<()> {
        self.end("QUIT")
    }

    fn end(&mut self, signal: &str) -> Result<()> {
        self.process
            .take()
            .map_or(Ok(()), |mut process| process.end(signal))
    }

    /// The same data on the same port.
    pub fn start_again(&mut self) -> Result<()> {
        if self.process.is_some() {
            bail!("this PostgreSQL runs already");
        }
        let mut command = self.account.command(&self.bin.join("postgres"), "INT")?;
        command
            .arg("-D")
            .arg(self.data())
            .arg("-p")
            .arg(self.port.to_string())
            .args(["-c", "listen_addresses=127.0.0.1"])
            .arg("-c")
            .arg(format!(
                "unix_socket_directories={}",
                self.dir.path().display()
            ))
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]))
            .current_dir(self.dir.path());
        if has_statement_statistics(&self.bin) {
            command.args(["-c", "shared_preload_libraries=pg_stat_statements"]);
        }
        let pid_file = self.data().join("postmaster.pid");
        let log = self.dir.path().join("postgres.log");
        self.process = Some(Process::start("PostgreSQL", command, &log, |pid| {
            fs::read_to_string(&pid_file).is_ok_and(|text| says_ready(&text, pid))
        })?);
        Ok(())
    }

    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.start_again()
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The data goes too, so nothing is worth a checkpoint.
        if let Err(error) = self.crash() {
            eprintln!("{error:#}");
        }
    }
}

/// Reading the server's own status instead of connecting: a connection might
/// be answered by a stranger that took the port first.
fn says_ready(pid_file: &str, pid: u32) -> bool {
    let mut lines = pid_file.lines();
    let same = lines.next().and_then(|line| line.trim().parse().ok()) == Some(pid);
    same && lines.nth(6).is_some_and(|status| status.trim() == "ready")
}

/// Minimal packages leave the contrib modules out, and naming a library that
/// is not there would keep the server from starting.
fn has_statement_statistics(bin: &Path) -> bool {
    bin.parent().is_some_and(|root| {
        ["lib", "lib/postgresql"]
            .iter()
            .any(|lib| root.join(lib).join("pg_stat_statements.so").is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = "42\n/data\n1700000000\n15432\n/tmp\n127.0.0.1\n 1 2\nready   \n";

    #[test]
    fn a_pid_file_of_this_process_with_status_ready_means_ready() {
        assert!(says_ready(READY, 42));
    }

    #[test]
    fn a_pid_file_left_by_a_crash_does_not_mean_ready() {
        assert!(!says_ready(READY, 43));
    }

    #[test]
    fn a_starting_server_is_not_ready() {
        assert!(!says_ready(&READY.replace("ready   ", "starting"), 42));
        assert!(!says_ready("42\n/data\n", 42));
    }
}
