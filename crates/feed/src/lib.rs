//! The feed door: facts, specifications and feeds, spoken as Jinaga's clients speak it.
//!
//! What it promises:
//! * a save is on disk, whole, when it is answered; a fact without its predecessors is refused;
//! * a stream sends every tuple of its feed, those of transactions that commit late too, and marks
//!   where the client has caught up (SYNC);
//! * a page costs as much as the page has, whatever came before it;
//! * a stream that waits costs the database nothing, and a save wakes only those it can concern.
//!
//! In reading order: [`fact`] and [`specification`] are the nouns, [`feeds`] the lists of tuples
//! that a specification is cut into, [`query`] a feed as the databases see it, [`store`] the
//! storage, [`stream`] and [`hub`] how clients get what is new.

pub mod bookmark;
pub mod declaration;
pub mod error;
pub mod fact;
pub mod feed;
pub mod feeds;
pub mod frame;
pub mod graph;
pub mod http;
pub mod hub;
pub mod json;
pub mod login;
pub mod metrics;
pub mod pages;
pub mod paging;
pub mod policy;
pub mod policy_file;
mod preview;
pub mod query;
pub mod reading;
pub mod service;
pub mod signature;
pub mod skeleton;
pub mod specification;
pub mod store;
pub mod stream;
pub mod topic;
pub mod waitlist;

/// The door's name: of its topics, its tables and in the metrics.
pub const DOOR: &str = "feed";

#[cfg(test)]
extern crate self as wakeline_feed;
#[cfg(test)]
#[path = "../tests/shared/database.rs"]
mod test_database;
#[cfg(test)]
#[path = "../tests/shared/facts.rs"]
mod test_facts;
#[cfg(test)]
#[path = "../tests/shared/saving.rs"]
mod test_saving;
