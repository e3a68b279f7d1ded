//! The HTTP that all doors share: holding a request, `Prefer`, problems, parameters, bodies, roles
//! and signed tokens.
//!
//! Nothing here knows a door or SQL.

mod access;
mod body;
mod body_memory;
mod caller_key;
mod checked_route;
mod delivery;
mod depth;
mod hold;
mod object;
mod params;
mod prefer;
mod problem;
pub mod token;
pub mod unknown;

pub use access::{ClientAddress, Identity, Right, Role, forbidden, require, require_by_method};

pub use body::{LimitedBody, Limits, json, json_at};
pub use body_memory::{BodyMeter, set_body_memory};
pub use caller_key::CallerKey;
pub use checked_route::{CheckedRoute, RequestCheck, RouteCheck};
pub use delivery::{Delivery, DeliveryGuard, UnsentAnswers};
pub use depth::set_max_depth;
pub use hold::{HoldOutcome, Timing, describe_metrics, hold};
pub use object::Object;
pub use params::{Params, path, percent_decoded};
pub use prefer::Prefer;
pub use problem::{Problem, ProblemDocument};
pub use wakeline_wake::{CheckResult, HoldError};
