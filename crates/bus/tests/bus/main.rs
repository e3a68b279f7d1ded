//! The bus on real servers. Two nodes are two engines and two buses in the one process of the
//! test; what they share is a server of the test's own.

mod canary;
mod carry;
mod channel;
mod coalesce;
mod dead_connection;
mod idle;
mod listener;
mod node;
mod pooler;
mod postgres_outage;
mod redis_outage;
mod server;
mod stores;
mod write;
