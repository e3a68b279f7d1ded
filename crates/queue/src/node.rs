//! The node that this process is, and what the process uses.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Node {
    pub hostname: String,
    /// The port that it listens on: tells nodes of one host apart.
    pub port: u16,
    /// What the process uses, if the system tells it.
    pub process: fn() -> Option<Process>,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            hostname: "localhost".into(),
            port: 0,
            process: || None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Processor time since its start.
    pub user: Duration,
    pub system: Duration,
    pub resident_bytes: i64,
    pub virtual_bytes: i64,
}
