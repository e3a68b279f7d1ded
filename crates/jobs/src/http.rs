//! The routes.

pub mod users;
