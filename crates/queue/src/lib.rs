//! The queue door: ordered partitions with consumer groups, in the shapes of Queen MQ's API.
//!
//! What it promises:
//! * A message whose push was answered is on disk and is delivered to every group at least once.
//! * Per partition and group, messages come in the order in which their pushes were committed.
//! * A partition has at most one valid lease per group. A consumer that has lost its lease changes
//!   nothing any more.
//! * A waiting pop costs the database nothing until there is something for it.
//!
//! In reading order: [`message`] and [`claim`] are what is handed out, [`ack`] what comes back,
//! [`write_batch`] both together. [`apply`] has the rules of a write batch and [`takeable`] those of
//! a claim; both databases share them. [`topic`] says which waiters are woken, [`service`] has the
//! operations, [`store`] the durable writes and the reads, [`http`] the routes.

pub mod ack;
pub mod apply;
pub mod browse;
pub mod claim;
pub mod claiming;
pub mod counters;
pub mod deliveries;
mod error;
pub mod http;
pub mod id;
pub mod message;
pub mod metrics;
pub mod name;
pub mod node;
pub mod options;
pub mod queue_admin;
pub mod seal;
pub mod segment;
pub mod service;
pub mod store;
pub mod stream;
pub mod takeable;
pub mod topic;
pub mod write_batch;

pub use error::Error;
pub use service::{Limits, Queue};
