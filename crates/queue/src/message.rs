//! A message that is pushed, and a message that is stored. The payload is JSON text, which is never
//! parsed here.

use uuid::Uuid;

use crate::seal::Fingerprint;

/// A message that a producer pushes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMessage {
    pub queue: String,
    pub partition: String,
    /// Unique within the partition: a second push of the same id is a duplicate. Without one, the
    /// message's own id is its transaction id.
    pub transaction_id: Option<String>,
    pub trace_id: Option<Uuid>,
    pub payload: Box<str>,
    pub producer_sub: Option<String>,
    /// The payload is sealed with the server's key.
    pub is_sealed: bool,
}

/// Where a message that was not refused is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushReceipt {
    /// Of the stored message; for a duplicate, of the message that was there before.
    pub id: Uuid,
    pub transaction_id: String,
    pub partition_id: Uuid,
    pub duplicate: bool,
}

/// Why a message was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushRefusal {
    /// The queue has as many unconsumed messages as it may have.
    Full { max_size: i64 },
    /// Pushes are paused for maintenance.
    Paused,
    /// The queue keeps its messages sealed, and this one is not.
    Unsealed,
    /// The message is sealed with a key of the server, and the store's messages with another one.
    OtherKey {
        store: Fingerprint,
        server: Option<Fingerprint>,
    },
    /// Its queue was deleted in the same moment.
    QueueDeleted,
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
