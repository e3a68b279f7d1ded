//! `/api/v1/analytics`: counters per queue and time step, and the statistics of the nodes.

mod nodes;
mod range;

pub(super) mod parked_replicas;
pub(super) mod postgres_stats;
pub(super) mod queue_lag;
pub(super) mod queue_ops;
pub(super) mod retention;
pub(super) mod system_metrics;
pub(super) mod worker_metrics;

pub(super) use nodes::workers;
pub(super) use range::{Range, RangeQuery, average_ms, per_second};
pub(super) use worker_metrics::joined;
