//! The promises of the store on PostgreSQL.

mod batches;
mod disk_full;
mod fixture;
mod listener;
mod migrations;
mod neighbours;
mod order;
mod outages;
mod pooler;
mod races;
