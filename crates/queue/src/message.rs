//! A message on its way in and on its way out. The payload is JSON text that nobody here parses.

use uuid::Uuid;

/// A message that a producer pushes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    pub queue: String,
    pub partition: String,
    pub id: Uuid,
    /// Unique within the partition: a second push of the same one is a duplicate.
    pub transaction_id: String,
    pub trace_id: Option<Uuid>,
    pub payload: Box<str>,
    pub producer_sub: Option<String>,
}

/// What became of a pushed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The stored message: for a duplicate the one that was there before.
    pub id: Uuid,
    pub duplicate: bool,
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: Uuid,
    pub transaction_id: String,
    pub trace_id: Option<Uuid>,
    pub payload: String,
    pub producer_sub: Option<String>,
    /// Microseconds since 1970, by the clock of the store.
    pub created_us: i64,
}
