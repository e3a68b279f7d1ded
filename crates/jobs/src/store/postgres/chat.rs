//! The chat on PostgreSQL.

use uuid::Uuid;
use wakeline_bus::Write;

use super::PostgresStore;
use crate::{
    message::Message,
    store::{Chat, Commit, values_of, write},
    wakes,
};

impl Chat for PostgresStore {
    fn say(&self, room: String, user: Uuid, content: String, kept: i64) -> Write<Option<Message>> {
        write(
            self,
            Commit::Alone("jobs_say"),
            "SELECT $1 AS room, m.said_at, m.user_id, m.content, u.email
             FROM wakeline.jobs_say($1, $2, $3, $4) m
             LEFT JOIN wakeline.jobs_user u ON u.id = m.user_id",
            values_of![room, user, content, kept],
            wakes::nobody,
            |rows| Ok(rows.first().map(Message::from_row)),
        )
    }
}
