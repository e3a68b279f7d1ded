//! The wake engine: which requests wait for what, and which of them a wake is given to.
//!
//! Every wait in the product is the same four steps, in this order:
//!
//! 1. [`Engine::register`] the topics,
//! 2. check the store,
//! 3. [`Waiter::park`] until a wake, the deadline or the drain,
//! 4. check again.
//!
//! [`Hold`] runs the four steps.
//!
//! Registering before the check is what makes a lost update impossible: a wake between the check
//! and the park has already been given to the waiter when it parks.
//!
//! A wake is a hint that a topic may have something. It is never the truth: the store is. The
//! engine knows no HTTP and no SQL, parks a waiter for a few hundred bytes, and runs one task for
//! all deadlines and timers together.
//!
//! [`State`] holds the rules as a pure state machine that is given the time; [`Engine`] is the
//! asynchronous wrapper around it.

mod engine;
mod hold;
mod line;
mod state;
mod sync;
mod timers;
mod topic;
mod topics;
mod view;
mod waiters;

pub use engine::{Engine, Waiter};
pub use hold::{CheckResult, Hold, HoldEnd, HoldError, LastWake};
pub use state::{HoldRefusal, Limits, ParkOutcome, State, WakeResult};
pub use timers::TimerId;
pub use topic::{Cause, EngineTime, Topic, WaitGroup, WaitKey, Wake, WakeMode};
pub use view::{DoorCounters, WaitedKey, WaiterPage, WaiterView};
pub use waiters::WaiterId;
