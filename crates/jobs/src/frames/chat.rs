//! The chat of a room. Messages are sent to the clients in the room; of a room that exists, the newest
//! are stored.
//!
//! zndraw-joblib's client uploads nothing when a read fails, but writes so in the chat; the readers
//! that wait for that request get the failure at once.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{Frames, no_room, unprocessable};
use crate::{caller::Caller, error::Error, message::Message, name};

/// Characters of a message that are kept and sent on; a traceback can be long.
const MAX_CONTENT: usize = 20_000;
/// Of a failed read's reason.
const MAX_DETAIL: usize = 1_000;
const HASH: usize = 64;

/// The newest messages come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePage {
    pub messages: Vec<Message>,
    pub has_more: bool,
    /// How many the room has.
    pub total: i64,
}

impl Frames {
    /// A message to a room of jobs only, which is not created here, is sent and not stored.
    pub async fn say(
        self: &Arc<Self>,
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
        let kept: String = content.chars().take(MAX_CONTENT).collect();
        // PostgreSQL stores no NUL.
        let kept = kept.replace('\0', "\u{fffd}");
        let (this, name) = (self.clone(), room.clone());
        let said = self
            .store
            .say(room, caller.id, kept.clone(), self.limits.messages);
        let said = said.map(move |stored| {
            let message = stored.unwrap_or_else(|| Message {
                said_at: now_ms(),
                room: name,
                user: caller.id,
                email: None,
                content: kept,
            });
            this.tell_room(&message.room, "message_new", message.document());
            message
        });
        let message = said.commit(&self.bus).await?;
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

    /// The newest messages, or those from before a time in milliseconds.
    pub async fn messages(
        &self,
        room: String,
        before: Option<i64>,
        limit: i64,
    ) -> Result<MessagePage, Error> {
        let found = self.store.messages(room.clone(), before, limit + 1).await?;
        let (mut messages, total) = found.ok_or_else(|| no_room(&room))?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = messages.len() > limit;
        messages.truncate(limit);
        Ok(MessagePage {
            messages,
            has_more,
            total,
        })
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
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
    fn a_failed_read_is_recognised_in_the_text_of_the_real_client() {
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
    fn a_text_of_another_form_is_no_failed_read() {
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
