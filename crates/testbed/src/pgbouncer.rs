//! A private PgBouncer in front of a PostgreSQL, for any of its databases.

use std::fs;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::account::Account;
use crate::port::on_free_port;
use crate::process::Process;
use crate::programs::program;

#[derive(Debug)]
pub struct Pgbouncer {
    process: Process,
    _dir: TempDir,
    port: u16,
}

impl Pgbouncer {
    /// `postgres` is `host:port`; `pool_mode` is PgBouncer's own word:
    /// `session`, `transaction` or `statement`.
    pub fn start(postgres: &str, pool_mode: &str) -> Result<Pgbouncer> {
        let (host, port) = postgres
            .rsplit_once(':')
            .with_context(|| format!("`{postgres}` is not host:port"))?;
        let program = program("pgbouncer", "pgbouncer")?;
        let account = Account::unprivileged()?;
        on_free_port(|listen_port| {
            let dir = tempfile::Builder::new()
                .prefix("wakeline-pgbouncer-")
                .tempdir()?;
            account.give(dir.path())?;
            let users = dir.path().join("users.txt");
            fs::write(&users, "\"postgres\" \"\"\n")?;
            let config = dir.path().join("pgbouncer.ini");
            // No unix socket: with one, PgBouncer would run on without its port.
            fs::write(
                &config,
                format!(
                    "[databases]\n\
                     * = host={host} port={port}\n\
                     [pgbouncer]\n\
                     listen_addr = 127.0.0.1\n\
                     listen_port = {listen_port}\n\
                     unix_socket_dir =\n\
                     auth_type = trust\n\
                     auth_file = {}\n\
                     pool_mode = {pool_mode}\n\
                     ignore_startup_parameters = extra_float_digits\n",
                    users.display()
                ),
            )?;
            let mut command = account.command(&program, "KILL")?;
            command.arg(&config).current_dir(dir.path());
            let log = dir.path().join("pgbouncer.log");
            // Its own log and not a connection: on the port a stranger might answer.
            let listening = format!("listening on 127.0.0.1:{listen_port}");
            let process = Process::start("PgBouncer", command, &log, |_| {
                fs::read_to_string(&log).is_ok_and(|text| text.contains(&listening))
            })?;
            Ok(Pgbouncer {
                process,
                _dir: dir,
                port: listen_port,
            })
        })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    #[must_use]
    pub fn url_for(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pgbouncer {
    fn drop(&mut self) {
        // Its gentler signals wait for clients, and changed meaning in 1.23.
        if let Err(error) = self.process.end("KILL") {
            eprintln!("{error:#}");
        }
    }
}
