//! The routes.

pub mod frames;
pub mod rooms;
mod signed;
