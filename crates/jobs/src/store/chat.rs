//! The durable steps of a room's chat.

use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Query, Row, StoreFuture, only, values_of};
use crate::message::Message;

/// A room without messages is one row without a time.
const MESSAGES: &str = "SELECT r.name AS room, m.said_at, m.user_id, m.content, u.email,
        (SELECT count(*) FROM wakeline.jobs_message c WHERE c.room_id = r.id) AS total
    FROM wakeline.jobs_room r
    LEFT JOIN wakeline.jobs_message m ON m.room_id = r.id AND ($2 IS NULL OR m.said_at < $2)
    LEFT JOIN wakeline.jobs_user u ON u.id = m.user_id
    WHERE r.name = $1 ORDER BY m.said_at DESC LIMIT $3";

pub trait Chat: Query {
    /// Stores a message of a room that exists, and keeps only the newest `kept`. `None`: there is no
    /// such room. A repeat stores it again.
    fn say(&self, room: String, user: Uuid, content: String, kept: i64) -> Write<Option<Message>>;

    /// The newest messages first, from before a time if one is given, and how many the room has.
    /// `None`: there is no such room.
    fn messages(
        &self,
        room: String,
        before: Option<i64>,
        limit: i64,
    ) -> StoreFuture<'_, Option<(Vec<Message>, i64)>> {
        let rows = self.rows("jobs_messages", MESSAGES, values_of![room, before, limit]);
        async move {
            let rows = rows.await?;
            if rows.is_empty() {
                return Ok(None);
            }
            let said = rows.iter().filter(|row| !row.is_null("said_at"));
            let messages = said.map(Message::from_row).collect();
            Ok(Some((messages, only(&rows)?.get("total"))))
        }
        .boxed()
    }
}

impl Message {
    /// From a row with its room's name and its user's email.
    pub(super) fn from_row(row: &Row) -> Self {
        Self {
            said_at: row.get("said_at"),
            room: row.get("room"),
            user: row.get("user_id"),
            email: row.get("email"),
            content: row.get("content"),
        }
    }
}
