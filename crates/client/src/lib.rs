//! A small typed client of a Wakeline server's queues.
//!
//! It speaks the queue protocol over HTTP/1.1, or HTTP/2 with prior knowledge, and adds no
//! retries of its own: an [`Error`] says whether the outcome is known and whether asking again
//! is safe, and the caller decides.

mod ack;
mod address;
mod client;
mod error;
mod pop;
mod probe;
mod push;

pub use ack::{Ack, AckResult, AckStatus};
pub use client::{Builder, Client};
pub use error::{Error, Outcome};
pub use pop::{Message, PopRequest, Popped};
pub use probe::{Readiness, Waits};
pub use push::{PushItem, PushStatus, Pushed};

use serde::{Deserialize, Deserializer};

/// Servers of this protocol write `null` and an absent field for the same thing.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// An auto-acknowledged message carries the empty text where a lease would stand.
fn empty_as_none<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}
