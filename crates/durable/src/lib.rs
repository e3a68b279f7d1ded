//! A PostgreSQL provider for the [`duroxide`] workflow runtime that is woken instead of polling.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let provider = wakeline_durable::PostgresProvider::connect("postgres://localhost/app").await?;
//! # Ok(()) }
//! ```
//!
//! A dispatcher whose fetch is empty registers with the wake engine. It does not ask the database
//! again before an item can be fetched: a message or an activity was written (by this process or
//! another), a timer is due, a lease or a session has expired, or an item was released. The wake goes
//! to a dispatcher that can fetch the item.
//!
//! * **One statement per call, and shared.** The writes of many callers at the same moment are one
//!   statement and one commit; so are the fetches of many dispatchers.
//! * **One clock**, the database's. Waits are durations: the database says how long until an item is
//!   due.
//! * **Histories are cached** by the process that worked on an instance last; the database says in
//!   the same answer whether the cached history is current.
//! * **An outage fails no workflow.** An interrupted call is repeated until its lease has certainly
//!   ended; the database alone decides who has a lease.
//!
//! The feature `provider`, on by default, is all that needs the runtime. Without it there are the
//! parts for operators: [`View`] reads a schema, and [`InstanceAdmin`] cancels, deletes and prunes its
//! instances.

#![warn(missing_docs)]

pub mod admin;
mod bus;
#[cfg(feature = "provider")]
mod provider;
mod row;
mod store;
pub mod view;

pub use admin::InstanceAdmin;
#[cfg(feature = "provider")]
pub use provider::{LongPollConfig, Options, PostgresProvider};
pub use store::MIGRATIONS;
pub use view::View;
pub use wakeline_store::{
    migrate::OpenError,
    postgres::{Options as PoolOptions, Policy},
};
