//! File descriptors: how many connections they are enough for.
//!
//! A process that has none left can accept no connection, not even a supervisor's, and a busy node
//! would be taken for a dead one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::{Config, Store};

/// Of the process: the standard streams, the runtime, the bus, an issuer's keys, results in files.
const OF_PROCESS: usize = 64;
/// A connection of SQLite has the database, its log, and a temporary file for a long sort.
const OF_SQLITE_CONNECTION: usize = 3;
/// SQLite's connections besides the readers: the writer and the checkpoints.
const SQLITE_WRITERS: usize = 2;
/// Connections to PostgreSQL besides `postgres.connections`: of batches, the bus and the view of
/// durable workflows.
const POSTGRES_OTHERS: usize = 16;

/// `http.max_connections`, or fewer if the process may not open so many files. `reserve` further
/// connections must always be possible.
pub(crate) fn connection_limit(config: &Config, reserve: usize) -> usize {
    let wanted = config.http.max_connections;
    let Some(files) = raise_limit() else {
        return wanted;
    };
    let most = most_connections(files, reserve + own(config));
    if most < wanted {
        tracing::info!(
            "at most {most} connections at once, not the {wanted} of http.max_connections: this \
             process may open {files} files (ulimit -n, or LimitNOFILE under systemd)"
        );
    }
    most.min(wanted)
}

/// Raises the limit as far as it may. Returns it, if there is one.
fn raise_limit() -> Option<usize> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Some systems have a lower limit of their own: then it stays as it is.
    let _ = setrlimit(Resource::Nofile, raised);
    let limit = getrlimit(Resource::Nofile).current?;
    Some(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// What the server opens besides connections of callers.
fn own(config: &Config) -> usize {
    OF_PROCESS
        + match config.store {
            Store::Sqlite => OF_SQLITE_CONNECTION * (config.sqlite.readers + SQLITE_WRITERS),
            Store::Postgres(_) => config.postgres.connections + POSTGRES_OTHERS,
        }
}

/// One at least, so that a server with very few files still serves somebody.
fn most_connections(files: usize, reserved: usize) -> usize {
    files.saturating_sub(reserved).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptors_that_the_server_itself_needs_are_left_over() {
        assert_eq!(most_connections(1_024, 100), 924);
        assert_eq!(most_connections(64, 100), 1);
        assert_eq!(most_connections(usize::MAX, 100), usize::MAX - 100);
        let mut config = Config::default();
        assert_eq!(own(&config), OF_PROCESS + 12);
        config.http.max_connections = 3;
        assert_eq!(connection_limit(&config, 0), 3);
    }
}
