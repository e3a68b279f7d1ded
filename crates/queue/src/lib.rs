//! The queue door: ordered partitions with consumer groups, spoken as Queen MQ's clients speak it.
//!
//! What it promises:
//! * a message that was acknowledged to its producer is on disk and is delivered to every group,
//!   at least once;
//! * per partition and group, messages come in the order in which their pushes were committed;
//! * at most one live lease per partition and group, and whoever has lost its lease changes
//!   nothing any more;
//! * a `pop` that waits costs the database nothing until there is something for it.
//!
//! In reading order: [`message`] and [`claim`] are what is handed out, [`ack`] what comes back,
//! [`step`] both together; [`book`] is what a step does and [`cut`] what a claim takes, as rules
//! that both stores share; [`topic`] is who is woken, [`service`] the operations, [`store`] the
//! durable steps, [`http`] the routes.

pub mod ack;
pub mod book;
pub mod browse;
pub mod claim;
pub mod claiming;
pub mod cut;
mod error;
pub mod http;
pub mod id;
pub mod manage;
pub mod message;
pub mod metrics;
pub mod name;
pub mod node;
pub mod options;
pub mod seal;
pub mod segment;
pub mod service;
pub mod step;
pub mod store;
pub mod stream;
pub mod tally;
pub mod topic;

pub use error::Error;
pub use service::{Limits, Queue};
