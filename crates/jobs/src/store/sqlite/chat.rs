//! The chat on SQLite.

use uuid::Uuid;
use wakeline_bus::Write;

use super::SqliteStore;
use crate::{
    message::Message,
    store::{Chat, values_of},
    wakes,
};

impl Chat for SqliteStore {
    fn say(&self, room: String, user: Uuid, content: String, kept: i64) -> Write<Option<Message>> {
        self.write("jobs_say", wakes::nobody, move |session| {
            let sql = "UPDATE jobs_room SET said_at = max(said_at + 1, ?2) WHERE name = ?1
                RETURNING id";
            let now = session.now / 1_000;
            let Some(id) = session.optional::<i64>(sql, (&room, now))? else {
                return Ok(None);
            };
            let sql = "INSERT INTO jobs_message (room_id, said_at, user_id, content)
                SELECT id, said_at, ?2, ?3 FROM jobs_room WHERE id = ?1";
            session.execute(sql, (id, user, &content))?;
            let sql = "DELETE FROM jobs_message WHERE room_id = ?1 AND said_at <= (
                SELECT said_at FROM jobs_message WHERE room_id = ?1
                ORDER BY said_at DESC LIMIT 1 OFFSET ?2)";
            session.execute(sql, (id, kept))?;
            let sql = "SELECT r.name AS room, m.said_at, m.user_id, m.content, u.email
                FROM jobs_room r JOIN jobs_message m ON m.room_id = r.id AND m.said_at = r.said_at
                LEFT JOIN jobs_user u ON u.id = m.user_id WHERE r.id = $1";
            let rows = session.rows(sql, values_of![id])?;
            Ok(rows.first().map(Message::from_row))
        })
    }
}
