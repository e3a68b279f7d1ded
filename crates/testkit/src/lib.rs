//! What the tests of all doors share: a fresh database per test, one suite on both databases,
//! bounded waits, writes outside of a door, a listener.
//!
//! The servers themselves are started by `wakeline-testbed`, which knows nothing of Wakeline.

mod clock;
mod database;
mod fresh;
mod listen;
mod suite;
mod wait;
mod write;

pub use clock::TestClock;
pub use database::{DatabaseKind, OpenStore, TestDatabase, WriteBlock};
pub use fresh::{PostgresDatabase, SqliteDatabase, url_for};
pub use listen::listen;
pub use suite::{Fixture, run_case};
pub use wait::{PATIENCE, eventually, soon};
pub use write::{CommitAlone, local_bus};
