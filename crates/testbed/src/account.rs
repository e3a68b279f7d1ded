//! The user that the servers run as. PostgreSQL and PgBouncer refuse to run as root, and
//! a container is usually root.

use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::programs::program;

/// Debian's PostgreSQL package creates this account.
const UNPRIVILEGED: &str = "postgres";

#[derive(Debug, Clone, Copy)]
pub enum Account {
    /// This process's own, which is not root.
    Own,
    Other {
        uid: u32,
        gid: u32,
    },
}

impl Account {
    pub fn unprivileged() -> Result<Account> {
        if id(&["-u"])? != 0 {
            return Ok(Account::Own);
        }
        Ok(Account::Other {
            uid: id(&["-u", UNPRIVILEGED])?,
            gid: id(&["-g", UNPRIVILEGED])?,
        })
    }

    pub fn give(self, path: &Path) -> Result<()> {
        if let Account::Other { uid, gid } = self {
            chown(path, Some(uid), Some(gid))
                .with_context(|| format!("giving {} to {UNPRIVILEGED}", path.display()))?;
        }
        Ok(())
    }

    /// `program` under this account; the kernel sends it `death_signal` when
    /// the process that started it is gone, however that process died.
    pub fn command(self, program_path: &Path, death_signal: &str) -> Result<Command> {
        let mut command = Command::new(program("setpriv", "util-linux")?);
        if let Account::Other { uid, gid } = self {
            command.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
            command.arg("--clear-groups");
        }
        command.args(["--pdeathsig", death_signal, "--"]);
        command.arg(program_path);
        Ok(command)
    }
}

fn id(arguments: &[&str]) -> Result<u32> {
    let output = Command::new("id")
        .args(arguments)
        .output()
        .context("running id")?;
    ensure!(
        output.status.success(),
        "id {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let text = String::from_utf8(output.stdout)?;
    Ok(text.trim().parse()?)
}
