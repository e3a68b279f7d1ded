//! What the store promises on PostgreSQL.

mod batches;
mod fixture;
mod migrations;
mod neighbours;
mod outages;
mod pooler;
mod races;
