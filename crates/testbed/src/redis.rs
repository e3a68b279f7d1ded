//! A private Redis that keeps nothing on disk.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use tempfile::TempDir;

use crate::account::Account;
use crate::port::on_free_port;
use crate::process::Process;
use crate::programs::program;

const ANSWER_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Redis {
    process: Option<Process>,
    dir: TempDir,
    port: u16,
}

impl Redis {
    /// An empty server, answering when this returns.
    pub fn start() -> Result<Redis> {
        on_free_port(|port| {
            let mut redis = Redis {
                process: None,
                dir: tempfile::Builder::new()
                    .prefix("wakeline-redis-")
                    .tempdir()?,
                port,
            };
            redis.start_again()?;
            Ok(redis)
        })
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn stop(&mut self) -> Result<()> {
        self.process
            .take()
            .map_or(Ok(()), |mut process| process.end("TERM"))
    }

    /// On the same port, and empty again.
    pub fn start_again(&mut self) -> Result<()> {
        if self.process.is_some() {
            bail!("this Redis runs already");
        }
        let socket = self.dir.path().join("redis.sock");
        let server = program("redis-server", "redis-server")?;
        let mut command = Account::Own.command(&server, "TERM")?;
        command
            .args(["--bind", "127.0.0.1", "--port"])
            .arg(self.port.to_string())
            .arg("--unixsocket")
            .arg(&socket)
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(self.dir.path())
            .current_dir(self.dir.path());
        let log = self.dir.path().join("redis.log");
        self.process = Some(Process::start("Redis", command, &log, |_| {
            answers(&socket)
        })?);
        Ok(())
    }

    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.start_again()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("{error:#}");
        }
    }
}

/// Asked through its own socket: on the port a stranger might answer. Redis
/// ends when it cannot have its port, so this answer covers both.
fn answers(socket: &Path) -> bool {
    let ping = || -> std::io::Result<[u8; 5]> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    ping().is_ok_and(|answer| &answer == b"+PONG")
}
