//! What both databases share: opening, migrations, group commit, and a fresh database per test.
//!
//! **Group commit.** Callers submit an operation and await its own result. Whatever arrived while
//! the last commit ran shares the next one; when nothing is under way, nothing waits. An
//! operation that fails, fails alone. A result is given only after the commit: acknowledged means
//! on disk.
//!
//! Nothing here knows a door: a door brings its migrations, its statements and its operations.

mod error;
mod load;
mod metrics;
pub mod migrate;
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "testing")]
pub mod testing;

pub use error::Error;
pub use load::Load;
pub use migrate::Migrations;
pub use postgres::Postgres;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
