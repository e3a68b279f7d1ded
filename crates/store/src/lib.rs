//! What both databases share: opening, migrations, group commit.
//!
//! **Group commit.** Callers submit an operation and await its own result. Whatever arrived while
//! the last commit ran shares the next one; when no commit is under way, none waits. An operation
//! that fails, fails alone. A result is returned only after the commit: acknowledged means on disk.
//!
//! Nothing here knows a door: a door brings its migrations, its statements and its operations.

mod error;
mod load;
pub mod metrics;
pub mod migrate;
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use error::Error;
pub use load::Load;
pub use migrate::Migrations;
pub use postgres::Postgres;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
