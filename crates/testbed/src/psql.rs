//! A question to a database from outside, without a client library.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::programs::{find_postgres, program};

/// Runs `sql` in one session at `url`; the rows as text, columns joined by `|`.
pub fn psql(url: &str, sql: &str) -> Result<String> {
    // Not Debian's wrapper on PATH first: it guesses a cluster and needs Perl.
    let client = find_postgres()
        .map(|bin| bin.join("psql"))
        .filter(|file| file.is_file())
        .map_or_else(|| program("psql", "postgresql-client"), Ok)?;
    let output = Command::new(client)
        .args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only"])
        .args(["--set", "ON_ERROR_STOP=1", "--dbname", url])
        .args(["--command", sql])
        .output()
        .context("running psql")?;
    ensure!(
        output.status.success(),
        "psql: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
