//! The binary itself, started as an operator starts it, on real databases.
//!
//! `cargo xtask test` starts PostgreSQL and Redis and names them in the environment.

mod access;
mod admin;
mod bad_input;
mod caller_limits;
mod commands;
mod connections;
mod crash;
mod descriptors;
mod disk_full;
mod drain;
mod durable;
mod files;
mod fixture;
mod hang_up;
mod held_claims;
mod ignored_names;
mod jobs;
mod limits;
mod logins;
mod metrics;
mod nodes;
mod observability;
mod outage;
mod outline;
mod postgres_refusals;
mod queue;
mod redact;
mod secrets;
mod server;
mod start_settings;
mod startup;
mod strangers;
mod systemd;
mod wire;
