//! Requests to the feed door of a whole server, one after the other: see [`server::requests`].

use crate::server;

pub fn run(input: &[u8]) {
    server::requests(input);
}
