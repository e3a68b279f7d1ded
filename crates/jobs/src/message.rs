//! Messages of a room's chat.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::time::shown;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Milliseconds since 1970. No other message of the room has the same, so it is its number too.
    pub said_at: i64,
    pub room: String,
    pub user: Uuid,
    /// Of the user, if the user is known here.
    pub email: Option<String>,
    pub content: String,
}

impl Message {
    /// As in answers and in the event.
    #[must_use]
    pub fn document(&self) -> Value {
        json!({
            "id": self.said_at,
            "room_id": self.room,
            "user_id": self.user,
            "content": self.content,
            "created_at": shown(self.said_at.saturating_mul(1_000)),
            "updated_at": null,
            "email": self.email,
        })
    }
}
