//! The provider's promises beyond duroxide's validation suite, which every provider must pass.

mod becoming_ready;
mod cache;
mod cut_connections;
mod empty_polls;
mod fixture;
mod hangups;
mod instance_admin;
mod lost_answers;
mod outages;
mod poison;
mod proxy;
mod routing;
mod schemas;
mod stress;
mod takeover;
mod test_runtime;
mod timers;
mod wakes;
