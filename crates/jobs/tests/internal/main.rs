//! The internal providers, which the server runs itself.

mod escapes;
mod listing;
mod registry;
mod tree;
