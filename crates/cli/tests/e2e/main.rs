//! The binary itself, started as an operator starts it, on real databases.
//!
//! `cargo xtask test` starts PostgreSQL and Redis and names them in the environment.

mod access;
mod admin;
mod bad_input;
mod commands;
mod connections;
mod crash;
mod drain;
mod durable;
mod fixture;
mod hang_up;
mod jobs;
mod limits;
mod metrics;
mod nodes;
mod observability;
mod outage;
mod outline;
mod queue;
mod redact;
mod server;
mod startup;
mod systemd;
mod wire;
