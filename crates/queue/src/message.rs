//! A message on its way in and on its way out. The payload is JSON text that nobody here parses.

use uuid::Uuid;

/// A message that a producer pushes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    pub queue: String,
    pub partition: String,
    /// Unique within the partition: a second push of the same one is a duplicate. Without one, the
    /// message's own id is its transaction id.
    pub transaction_id: Option<String>,
    pub trace_id: Option<Uuid>,
    pub payload: Box<str>,
    pub producer_sub: Option<String>,
    /// The payload is sealed with the server's key.
    pub is_sealed: bool,
}

/// What became of a message that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The stored message: for a duplicate the one that was there before.
    pub id: Uuid,
    pub transaction_id: String,
    pub partition_id: Uuid,
    pub duplicate: bool,
}

/// Why a message was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The queue has as many messages as it may have.
    Full { max_size: i64 },
    /// Pushes are paused for maintenance.
    Paused,
    /// The queue keeps its messages sealed, and this one is not.
    Unsealed,
    /// Its queue was deleted in the same moment.
    Gone,
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub id: Uuid,
    pub position: i64,
    pub transaction_id: String,
    pub trace_id: Option<Uuid>,
    pub payload: String,
    pub producer_sub: Option<String>,
    /// Microseconds since 1970, by the clock of the store.
    pub created_us: i64,
    /// The payload is sealed with the server's key.
    pub is_sealed: bool,
}
