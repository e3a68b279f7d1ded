//! Events of a stream as bytes: Jinaga's lines, and server-sent events.

use std::fmt::Write;

use bytes::Bytes;

use crate::{fact::Reference, json::write_string, stream::StreamEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFormat {
    /// `application/x-jinaga-feed-stream`: a line of JSON and a blank one.
    Jinaga,
    /// `text/event-stream`: the bookmark is the event's id.
    Events,
}

impl StreamFormat {
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Jinaga => "application/x-jinaga-feed-stream",
            Self::Events => "text/event-stream",
        }
    }

    #[must_use]
    pub fn encode(self, event: &StreamEvent) -> Bytes {
        let mut text = String::new();
        match event {
            StreamEvent::Page { page, is_synced } => {
                let bookmark = page.reached.to_string();
                self.frame(
                    &mut text,
                    "page",
                    &bookmark,
                    &body(&page.references, &bookmark),
                );
                if *is_synced {
                    self.frame(&mut text, "sync", &bookmark, &body(&[], &bookmark));
                }
            }
            StreamEvent::Sync(bookmark) => {
                self.frame(&mut text, "sync", bookmark, &body(&[], bookmark));
            }
            StreamEvent::Denied { denial, bookmark } => {
                let mut denied = body(&[], bookmark);
                denied.pop();
                denied.push_str(",\"decision\":\"denied\",\"code\":");
                write_string(&mut denied, denial.code);
                denied.push_str(",\"reason\":");
                write_string(&mut denied, &denial.reason);
                denied.push('}');
                self.frame(&mut text, "denied", bookmark, &denied);
            }
            // Jinaga's clients skip blank lines; a line that begins with a colon is a comment.
            StreamEvent::Heartbeat => text.push_str(match self {
                Self::Jinaga => "\n",
                Self::Events => ":\n\n",
            }),
        }
        text.into()
    }

    fn frame(self, text: &mut String, event: &str, bookmark: &str, body: &str) {
        match self {
            Self::Jinaga => {
                text.push_str(body);
                text.push_str("\n\n");
            }
            Self::Events => {
                let _ = write!(text, "event: {event}\nid: {bookmark}\ndata: {body}\n\n");
            }
        }
    }
}

/// `{"references":[…],"bookmark":"…"}`
#[must_use]
pub fn body(references: &[Reference], bookmark: &str) -> String {
    let mut text = String::with_capacity(40 + references.len() * 140);
    text.push_str("{\"references\":[");
    for (index, reference) in references.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        reference.write(&mut text);
    }
    text.push_str("],\"bookmark\":");
    write_string(&mut text, bookmark);
    text.push('}');
    text
}
