//! What every door's HTTP shares: the hold itself, how a wait is asked for, what a mistake looks
//! like, and how an answer is known to have left.
//!
//! Nothing here knows a door or SQL.

mod access;
mod body;
mod delivery;
mod hold;
mod object;
mod params;
mod prefer;
mod problem;

pub use access::{Identity, Right, Role, forbidden, require, require_by_method};

pub use body::{LimitedBody, Limits, json, json_at};
pub use delivery::{Delivery, DeliveryGuard};
pub use hold::{HoldOutcome, Timing, hold};
pub use object::Object;
pub use params::{Params, path, percent_decoded};
pub use prefer::Prefer;
pub use problem::{Problem, ProblemDocument};
pub use wakeline_wake::{CheckResult, HoldError};
