//! The promises of the store on SQLite.

mod commits;
mod disk_full;
mod file;
mod fixture;
mod migrations;
mod neighbours;
