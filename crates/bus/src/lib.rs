//! The bus: carries wakes between processes, and knows when it cannot.
//!
//! A wake is a hint. The bus may lose one; what it may not do is to go silent unnoticed. Three
//! things see to that:
//!
//! * after every (re)connect each door asks its store, in one statement, what has become ready
//!   among all that its waiters wait for ([`Recheck`]);
//! * a canary message every few seconds measures the way there and back; while it is missing, that
//!   same question is asked every second instead of every minute;
//! * the question is asked at the fallback interval anyway.
//!
//! Publishing never waits: waiters of this process are woken at once, and a task of its own sends
//! what has gathered meanwhile, coalesced, to the other processes. It is called after the commit
//! and outside the caller's transaction, because `NOTIFY` takes a database-wide lock at commit.

mod bus;
mod chunks;
mod fallback;
mod health;
mod message;
mod outbox;
mod peers;
mod postgres;
mod redis;
mod transport;
mod write;

pub use bus::{Bus, BusMode, Options, Status};
pub use fallback::{DueWake, Intervals, Recheck, watch};
pub use write::{Wakes, Write};
