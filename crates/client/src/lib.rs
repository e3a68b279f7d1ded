//! A small typed client of a Wakeline server's queues.
//!
//! It speaks the queue protocol over HTTP/1.1, or HTTP/2 with prior knowledge. It repeats nothing by
//! itself: an [`Error`] says whether the outcome is known and whether a repeat is safe, and the
//! caller decides.

#![warn(missing_docs)]

mod ack;
mod address;
mod client;
mod error;
mod pop;
mod probe;
mod push;

pub use ack::{Ack, AckResult, AckStatus};
pub use client::{Client, ClientBuilder};
pub use error::{Error, Outcome};
pub use pop::{Message, PopRequest, PopResult};
pub use probe::{Readiness, Waits};
pub use push::{PushItem, PushResult, PushStatus};

use serde::{Deserialize, Deserializer};

/// In this protocol `null` and an absent field are the same.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A message that was acknowledged by the pop has an empty text as its lease.
fn empty_as_none<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}
