//! The test's own PostgreSQL, inspected and disturbed from outside.

use std::process::Command;

use wakeline_testbed::{Postgres, psql};

/// The nodes' database; the test's own statements go to another one.
pub(crate) const DATABASE: &str = "wakeline";

pub(crate) const LISTENS: &str = "query LIKE 'LISTEN%'";
pub(crate) const SENDS: &str = "query LIKE 'SELECT pg_notify%'";

pub(crate) struct Server(pub(crate) Postgres);

impl Server {
    pub(crate) fn start() -> Self {
        let server = Self(Postgres::start().unwrap());
        server.run_sql(&format!("CREATE DATABASE {DATABASE}"));
        server
    }

    pub(crate) fn url(&self) -> String {
        self.0.url_for(DATABASE)
    }

    pub(crate) fn run_sql(&self, sql: &str) -> String {
        psql(&self.0.url(), sql).unwrap()
    }

    /// Whether the nodes' database takes new connections; open ones stay.
    pub(crate) fn allow_connections(&self, yes: bool) {
        self.run_sql(&format!(
            "ALTER DATABASE {DATABASE} ALLOW_CONNECTIONS {yes}"
        ));
    }

    /// The processes of the nodes' sessions that fulfil `condition`.
    pub(crate) fn backends(&self, condition: &str) -> Vec<u32> {
        self.run_sql(&format!(
            "SELECT pid FROM pg_stat_activity WHERE datname = '{DATABASE}' AND {condition}"
        ))
        .lines()
        .map(|pid| pid.parse().unwrap())
        .collect()
    }

    pub(crate) fn only_backend(&self, condition: &str) -> u32 {
        match self.backends(condition)[..] {
            [pid] => pid,
            ref others => panic!("not one session with {condition}: {others:?}"),
        }
    }
}

/// A process that stands still until this is dropped.
pub(crate) struct FrozenProcess(u32);

impl FrozenProcess {
    pub(crate) fn freeze(pid: u32) -> Self {
        signal("STOP", pid);
        Self(pid)
    }
}

impl Drop for FrozenProcess {
    fn drop(&mut self) {
        signal("CONT", self.0);
    }
}

fn signal(name: &str, pid: u32) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}
