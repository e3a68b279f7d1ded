//! The chat of a room. Messages are not stored: they are sent to the clients in the room.
//!
//! zndraw-joblib's client uploads nothing when a read fails, but writes so in the chat; the readers
//! that wait for that request get the failure at once.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use uuid::Uuid;

use super::{Frames, unprocessable};
use crate::{caller::Caller, error::Error, name, time::shown};

/// Characters of a message that are sent on; a traceback can be long.
const MAX_CONTENT: usize = 20_000;
/// Of a failed read's reason.
const MAX_DETAIL: usize = 1_000;
const HASH: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Microseconds since 1970; it is the message's number too.
    pub created_at: i64,
    pub room: String,
    pub user: Uuid,
    pub content: String,
}

impl Frames {
    pub async fn say(
        &self,
        caller: Caller,
        room: String,
        content: String,
    ) -> Result<Message, Error> {
        name::check_room(&room)?;
        if content.is_empty() {
            return Err(unprocessable(
                "body.content: String should have at least 1 character",
            ));
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let micros = since.unwrap_or_default().as_micros();
        let message = Message {
            created_at: i64::try_from(micros).unwrap_or(i64::MAX),
            room,
            user: caller.id,
            content: content.chars().take(MAX_CONTENT).collect(),
        };
        self.tell_room(&message.room, "message_new", message.document());
        if let Some(failed) = FailedRead::recognise(&content) {
            let detail = failed.detail();
            let (room, provider, hash) = (&message.room, failed.provider, failed.hash);
            let heard = self
                .failed_reads
                .read_failed(room, provider, hash, &detail, caller);
            heard.await;
        }
        Ok(message)
    }
}

impl Message {
    /// As in the answer and in the event.
    #[must_use]
    pub fn document(&self) -> serde_json::Value {
        json!({
            "id": self.created_at,
            "room_id": self.room,
            "user_id": self.user,
            "content": self.content,
            "created_at": shown(self.created_at),
            "updated_at": null,
            "email": null,
        })
    }
}

/// ``Provider `X` read failed for request `<hash>`:`` and a traceback.
#[derive(Debug, PartialEq, Eq)]
struct FailedRead<'a> {
    provider: &'a str,
    hash: &'a str,
    traceback: &'a str,
}

impl<'a> FailedRead<'a> {
    fn recognise(content: &'a str) -> Option<Self> {
        let rest = content.strip_prefix("Provider `")?;
        let (provider, rest) = rest.split_once("` read failed for request `")?;
        let (hash, rest) = rest.split_once('`')?;
        let is_hash = hash.len() == HASH && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let traceback = rest.strip_prefix(':')?;
        (is_hash && !provider.is_empty()).then_some(Self {
            provider,
            hash,
            traceback,
        })
    }

    /// The exception itself: the text after the last line of code, which is indented.
    fn detail(&self) -> String {
        let text = self.traceback.trim().trim_matches('`').trim();
        let lines: Vec<_> = text.lines().collect();
        let after = lines
            .iter()
            .rposition(|line| line.starts_with("  "))
            .map_or(0, |last| last + 1);
        let detail = lines[after..].join("\n");
        let detail = if detail.is_empty() { text } else { &detail };
        detail.chars().take(MAX_DETAIL).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "30ba47c43772e94553e235c91301cac4276d053453807f9f8eb7546b57ba94d0";

    #[test]
    fn a_failed_read_is_recognised_as_the_real_client_tells_it() {
        let content = format!(
            "Provider `room-s:filesystem:local` read failed for request `{HASH}`:\n```\n\
             Traceback (most recent call last):\n  File \"client.py\", line 819\n    \
             result = instance.read(reg.handler)\n             ^^^^^\n\
             FileNotFoundError: nope\nsecond line\n```"
        );
        let failed = FailedRead::recognise(&content).unwrap();
        assert_eq!(failed.provider, "room-s:filesystem:local");
        assert_eq!(failed.hash, HASH);
        assert_eq!(failed.detail(), "FileNotFoundError: nope\nsecond line");
    }

    #[test]
    fn what_has_another_form_is_only_talk() {
        let short = &HASH[1..];
        for content in [
            "hello".to_owned(),
            format!("Provider `a` read failed for request `{short}`: x"),
            format!("Provider `a` read failed for request `{short}g`: x"),
            format!("Provider `a` read failed for request `{HASH}` x"),
            format!("Provider `` read failed for request `{HASH}`: x"),
            format!("the Provider `a` read failed for request `{HASH}`: x"),
        ] {
            assert_eq!(FailedRead::recognise(&content), None, "{content}");
        }
    }

    #[test]
    fn without_a_traceback_the_whole_text_is_the_reason() {
        let content = format!("Provider `a` read failed for request `{HASH}`: no luck");
        let failed = FailedRead::recognise(&content).unwrap();
        assert_eq!(failed.detail(), "no luck");
        let content = format!("Provider `a` read failed for request `{HASH}`:\n  indented");
        assert_eq!(
            FailedRead::recognise(&content).unwrap().detail(),
            "indented"
        );
    }
}
