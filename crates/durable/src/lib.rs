//! A PostgreSQL provider for the [`duroxide`] workflow runtime that is woken instead of polling.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let provider = wakeline_durable::PostgresProvider::connect("postgres://localhost/app").await?;
//! # Ok(()) }
//! ```
//!
//! A dispatcher that finds nothing registers with the wake engine and asks the database nothing
//! until something has become fetchable: a message or an activity was written (here or by another
//! process), a timer is due, a lease or a session has run out, something was given back. What is
//! woken is a dispatcher that may take it.
//!
//! * **One statement per call, shared.** What many callers write in the same moment is one
//!   statement and one commit ([`store`]); so is what many dispatchers take.
//! * **One clock**, the database's. Waits are relative: the database says how long until something
//!   is due.
//! * **History is appended and kept in memory** by the process that worked on an instance last; the
//!   database says in the same answer whether that memory is still right.
//! * **An outage fails nothing.** What was interrupted is tried again until the lease it was done
//!   under is certainly over; whose lease that was is decided by the database alone.

mod admin;
mod cache;
mod error;
mod hold;
mod hub;
mod item;
mod lease;
mod options;
mod provider;
mod quiet;
mod store;
mod topic;
pub mod view;
mod wait;

pub use options::{LongPollConfig, Options};
pub use provider::PostgresProvider;
pub use store::MIGRATIONS;
pub use view::View;
pub use wakeline_store::{
    migrate::OpenError,
    postgres::{Options as PoolOptions, Policy},
};
