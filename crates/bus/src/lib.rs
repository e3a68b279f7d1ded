//! The bus: carries wakes between processes, and knows when it cannot.
//!
//! A wake is a hint. The bus may lose one; it may not go silent unnoticed. Three rules see to that:
//!
//! * after every (re)connect each door rechecks its waiters: one statement asks the store what has
//!   become ready of all that they wait for ([`Recheck`]);
//! * a canary message every few seconds measures the round trip; while it is missing, the doors
//!   recheck every second instead of every minute;
//! * they recheck at the fallback interval anyway.
//!
//! ARCHITECTURE.md lists the way of a wake from function to function. The caller of a write waits for
//! none of it. Nothing is sent within its transaction, because `NOTIFY` takes a database-wide lock at
//! commit.

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

pub use bus::{Bus, BusMode, Options, Status, describe_metrics};
pub use fallback::{DueWake, Intervals, Recheck, watch};
pub use write::{Wakes, Write};
