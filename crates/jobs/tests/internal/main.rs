//! What the server runs itself.

mod escapes;
mod listing;
mod place;
mod registry;
