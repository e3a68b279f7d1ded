//! What the store promises on PostgreSQL.

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
