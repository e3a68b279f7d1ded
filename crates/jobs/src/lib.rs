//! The jobs and providers door: zndraw-joblib's API.
//!
//! What it guarantees:
//!
//! * a task that was accepted is on disk; it is given to one worker at a time, the oldest task
//!   first;
//! * a request that waits for a task, for a task's end or for a provider's answer costs the
//!   database nothing until there is something for it;
//! * however many readers want the same answer, on however many nodes, the provider gets one
//!   request;
//! * the answers of a provider that was removed or registered anew are not served.
//!
//! In reading order: [`name`] and [`page`]; [`worker`], [`job`], [`task`] and [`provider`] are the
//! nouns; [`topic`] has the topics that requests wait for; [`store`] the durable steps.

pub mod caller;
mod coalesce;
mod error;
pub mod events;
pub mod frame;
pub mod frames;
pub mod http;
pub mod internal;
pub mod job;
pub mod message;
pub mod metrics;
pub mod name;
pub mod page;
pub mod params;
pub mod problem;
pub mod progress;
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

pub use error::{Error, InvalidField, PROBLEM_JSON};
