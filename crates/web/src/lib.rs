//! The HTTP that all doors share: holding a request, `Prefer`, problems, parameters, bodies, roles
//! and signed tokens.
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
pub mod token;

pub use access::{Identity, Right, Role, forbidden, require, require_by_method};

pub use body::{LimitedBody, Limits, json, json_at};
pub use delivery::{Delivery, DeliveryGuard};
pub use hold::{HoldOutcome, Timing, describe_metrics, hold};
pub use object::Object;
pub use params::{Params, path, percent_decoded};
pub use prefer::Prefer;
pub use problem::{Problem, ProblemDocument};
pub use wakeline_wake::{CheckResult, HoldError};
