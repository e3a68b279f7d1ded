//! The jobs and providers door, spoken as zndraw-joblib's clients speak it.
//!
//! What it promises:
//! * a task that was accepted is on disk; it is handed to one worker at a time, the one that has
//!   waited longest first;
//! * whoever waits for a task, for its end or for a provider's answer costs the database nothing
//!   until there is something for it;
//! * however many ask a provider the same, on however many nodes, it is asked once;
//! * what a provider that is gone or was registered anew has answered is not served.
//!
//! In reading order: [`name`] and [`page`]; [`worker`], [`job`], [`task`] and [`provider`] are the
//! nouns; [`topic`] is who is woken; [`store`] the durable steps.

pub mod caller;
mod error;
pub mod events;
pub mod frame;
pub mod frames;
mod gather;
pub mod http;
pub mod internal;
pub mod job;
pub mod metrics;
pub mod name;
pub mod page;
pub mod params;
pub mod problem;
pub mod provider;
pub mod results;
pub mod room;
pub mod schema;
pub mod service;
pub mod socket;
pub mod store;
pub mod task;
mod time;
pub mod topic;
pub mod user;
pub mod users;
mod wakes;
pub mod worker;

pub use error::{Error, PROBLEM_JSON, Unfit};
