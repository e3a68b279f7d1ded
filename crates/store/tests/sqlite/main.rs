//! What the store promises on SQLite.

mod commits;
mod file;
mod fixture;
mod migrations;
mod neighbours;
